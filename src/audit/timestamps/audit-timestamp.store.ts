import { Injectable } from '@nestjs/common';
import type { OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import { checkpointColumns, storedOf, type CheckpointRow } from '../audit-checkpoint.store.js';
import type { AnchoredCheckpoint } from '../checkpoint.js';

/** A numbered checkpoint with the timestamp of its line, a TimeStampToken in DER. */
export interface StampedCheckpoint {
  readonly checkpoint: AnchoredCheckpoint;
  readonly token?: Buffer;
}

/** A timestamp without its checkpoint. */
export interface LoneTimestamp {
  readonly number: number;
  /** The first event that the checkpoint before it does not confirm. */
  readonly sequence: number;
}

/** A row `p` of `audit_checkpoints` with its timestamp. */
export interface StampedRow extends CheckpointRow {
  der: Buffer | null;
}

/** SQL for the numbered checkpoints of an org with their timestamps. */
export const stampedCheckpoints = `
  select ${checkpointColumns}, t.der
  from audit_checkpoints p
  left join audit_timestamps t on t.org_id = p.org_id and t.number = p.number
  where p.org_id = :org and p.number > 0`;

/** Stores the timestamps of checkpoints. */
@Injectable()
export class AuditTimestampStore {
  constructor(private readonly pg: Pg) {}

  /** Stores a timestamp. The first one of a checkpoint stays. */
  async insert({ orgId, number }: AnchoredCheckpoint, token: Uint8Array): Promise<void> {
    await this.pg.rows(
      'audit-timestamp-insert',
      `
      insert into audit_timestamps (org_id, number, der)
      values (:orgId, :number, :token)
      on conflict do nothing`,
      { orgId, number, token },
    );
  }

  /** Returns a page of the numbered checkpoints of an org in their order. */
  async stampedAfter(org: OrgId, number: number, limit: number): Promise<StampedCheckpoint[]> {
    const rows = await this.pg.rows<StampedRow>(
      'audit-timestamp-page',
      `${stampedCheckpoints} and p.number > :number
  order by p.number
  limit :limit`,
      { org, number, limit },
    );
    return rows.map(stampedOf);
  }

  /**
   * Returns the first timestamp without its checkpoint; undefined when all have one. It does not count timestamps of
   * checkpoints that retention dropped, because a worker may store one a moment later.
   */
  async firstWithoutCheckpoint(org: OrgId): Promise<LoneTimestamp | undefined> {
    const [row] = await this.pg.rows<{ number: string; sequence: string }>(
      'audit-timestamp-lone',
      `
      select t.number, coalesce(
        (select max(p.sequence) from audit_checkpoints p where p.org_id = :org and p.number < t.number), 0
      ) + 1 as sequence
      from audit_timestamps t
      where t.org_id = :org
        and not exists (select from audit_checkpoints p where p.org_id = :org and p.number = t.number)
        and t.number > coalesce((select max(removed_to) from audit_checkpoints where org_id = :org and cut), 0)
      order by t.number
      limit 1`,
      { org },
    );
    return row && { number: Number(row.number), sequence: Number(row.sequence) };
  }
}

/** Parses a row of `stampedCheckpoints`. */
export function stampedOf(row: StampedRow): StampedCheckpoint {
  return { checkpoint: storedOf(row).numbered!, ...(row.der && { token: row.der }) };
}
