import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { OrgId } from '../kernel/ids.js';
import { Pg } from '../platform/database/pg.js';
import { positional } from '../platform/database/sql.js';
import { genesisHash, type ChainState } from './chain.js';
import { checkpointHash, type AnchoredCheckpoint, type PlainStatement, type Signed } from './checkpoint.js';

/** A row of `audit_checkpoints`, optionally with the hash of the chain. */
export interface CheckpointRow {
  org_id: OrgId;
  number: string;
  prev_hash: string;
  sequence: string;
  hash: string;
  at: Date;
  kid: string;
  signature: string;
  chain_signature: string;
  cut: boolean;
  removed_to: string | null;
  chain_hash?: string | null;
}

/** A stored checkpoint, with the hash of the chain at its sequence. */
export interface StoredCheckpoint {
  /** Statement and signature in the format of the previous version. Every row has them; an export has no signature. */
  readonly plain: PlainStatement;
  readonly plainSignature?: string;
  readonly kid: string;
  /** Undefined in rows that were written before checkpoints got numbers. */
  readonly numbered?: AnchoredCheckpoint;
  readonly chainHash?: string;
}

/** Position after which the next page of checkpoints starts. */
export interface CheckpointCursor {
  readonly number: number;
  readonly sequence: number;
  readonly cut: boolean;
}

/** The events and checkpoints that retention dropped. */
export interface Cut extends ChainState {
  readonly removedTo: number;
}

/** The events of an org up to the last one that may be dropped. */
export interface Prefix extends ChainState {
  readonly org: OrgId;
}

/** Columns of a row `p` that `storedOf` reads. */
export const checkpointColumns = `p.org_id, p.number, p.prev_hash, p.sequence, p.hash, p.at, p.kid, p.signature,
    p.chain_signature, p.cut, p.removed_to`;

/** Reads and writes checkpoints of the audit, and drops the events and checkpoints before a cut. */
@Injectable()
export class AuditCheckpointStore {
  constructor(private readonly pg: Pg) {}

  /** Returns the orgs that have events after their last numbered checkpoint. Takes two index lookups for each org. */
  async unsignedOrgs(): Promise<OrgId[]> {
    const rows = await this.pg.rows<{ org: OrgId }>(
      'audit-unsigned-orgs',
      `
      select o.id as org
      from orgs o
      cross join lateral (
        select c.sequence from audit_chain c where c.org_id = o.id order by c.sequence desc limit 1
      ) head
      where head.sequence > coalesce((
        select p.sequence
        from audit_checkpoints p
        where p.org_id = o.id and p.number > 0 and not p.cut
        order by p.number desc
        limit 1
      ), 0)`,
    );
    return rows.map(({ org }) => org);
  }

  /**
   * Runs work that adds a checkpoint in a transaction with the lock of the org's chain, so that no other process
   * writes it.
   */
  async underLock(org: OrgId, work: (client: PoolClient) => Promise<void>): Promise<void> {
    const client = await this.pg.connect();
    try {
      await client.query('begin');
      await client.query(
        positional(`select pg_advisory_xact_lock(hashtextextended('audit:' || :org::text, 0))`, { org }),
      );
      await work(client);
      await client.query('commit');
    } catch (error) {
      await client.query('rollback').catch(() => undefined);
      throw error;
    } finally {
      client.release();
    }
  }

  /** Returns the end of a chain; undefined when a numbered checkpoint already covers it. */
  async unsignedHead(client: PoolClient, org: OrgId): Promise<ChainState | undefined> {
    const { rows } = await client.query<{ sequence: string; hash: string }>(
      positional(
        `
        select head.sequence, head.hash
        from (select sequence, hash from audit_chain where org_id = :org order by sequence desc limit 1) head
        where head.sequence > coalesce((
          select sequence
          from audit_checkpoints
          where org_id = :org and number > 0 and not cut
          order by number desc
          limit 1
        ), 0)`,
        { org },
      ),
    );
    return rows[0] && { sequence: Number(rows[0].sequence), hash: rows[0].hash };
  }

  /** Returns number and hash of the last numbered checkpoint; number 0 when there is none. */
  async lastNumbered(client: PoolClient, org: OrgId): Promise<{ number: number; hash: string }> {
    const { rows } = await client.query<CheckpointRow>(
      positional(
        `
        select ${checkpointColumns}
        from audit_checkpoints p
        where p.org_id = :org and p.number > 0
        order by p.number desc
        limit 1`,
        { org },
      ),
    );
    const last = rows[0] && storedOf(rows[0]).numbered;
    return last ? { number: last.number, hash: checkpointHash(last) } : { number: 0, hash: genesisHash };
  }

  /** Returns for each org the last event that is older than `days` together with all events before it. */
  async olderThan(days: number): Promise<Prefix[]> {
    const rows = await this.pg.rows<{ org: OrgId; sequence: string; hash: string }>(
      'audit-prefixes',
      `
      select c.org_id as org, c.sequence, c.hash
      from audit_chain c
      join (
        select
          c.org_id,
          min(c.sequence) filter (where e.at >= now() - make_interval(days => :days::int)) as kept,
          max(c.sequence) as last
        from audit_chain c join audit_events e on e.id = c.event_id
        group by c.org_id
      ) p on p.org_id = c.org_id and c.sequence = coalesce(p.kept, p.last + 1) - 1`,
      { days },
    );
    return rows.map(({ org, sequence, hash }) => ({ org, sequence: Number(sequence), hash }));
  }

  /**
   * Returns the highest number of the checkpoints that can be dropped: those before the first one that covers events
   * after the sequence.
   */
  async droppableTo(client: PoolClient, org: OrgId, sequence: number, last: number): Promise<number> {
    const { rows } = await client.query<{ number: string | null }>(
      positional(
        `
        select min(number) - 1 as number
        from audit_checkpoints
        where org_id = :org and number > 0 and not cut and sequence > :sequence`,
        { org, sequence },
      ),
    );
    return Number(rows[0]?.number ?? last);
  }

  /** Returns whether the chain still has an event. */
  async isChained(client: PoolClient, org: OrgId, sequence: number): Promise<boolean> {
    const { rows } = await client.query(
      positional('select from audit_chain where org_id = :org and sequence = :sequence', { org, sequence }),
    );
    return rows.length > 0;
  }

  /** Drops the start of a chain: events up to a sequence, and checkpoints with their timestamps up to a number. */
  async dropPrefix(client: PoolClient, org: OrgId, sequence: number, removedTo: number): Promise<void> {
    await client.query(`set local rialto.audit_cut = 'on'`);
    await client.query(
      positional(
        `
        delete from audit_checkpoints
        where org_id = :org and (number = 0 and sequence <= :sequence or number > 0 and number <= :removedTo)`,
        { org, sequence, removedTo },
      ),
    );
    await client.query(
      positional('delete from audit_timestamps where org_id = :org and number <= :removedTo', { org, removedTo }),
    );
    await client.query(
      positional(
        `
        with gone as (
          delete from audit_chain where org_id = :org and sequence <= :sequence returning event_id
        )
        delete from audit_events e
        using gone
        where e.id = gone.event_id`,
        { org, sequence },
      ),
    );
  }

  async insertCheckpoint(client: PoolClient, { statement, kid, signature, plainSignature }: Signed): Promise<void> {
    const { orgId, number, prevHash, sequence, hash, at, cut = false, removedTo = null } = statement;
    await client.query(
      positional(
        `
        insert into audit_checkpoints
          (org_id, number, prev_hash, sequence, hash, at, cut, removed_to, kid, signature, chain_signature)
        values
          (:orgId, :number, :prevHash, :sequence, :hash, :at, :cut, :removedTo, :kid, :plainSignature, :signature)`,
        { orgId, number, prevHash, sequence, hash, at, cut, removedTo, kid, plainSignature, signature },
      ),
    );
  }

  /** Returns the newest cut, where verification starts; undefined when there is none. */
  async newestCut(org: OrgId): Promise<Cut | undefined> {
    const [row] = await this.pg.rows<Pick<CheckpointRow, 'sequence' | 'hash' | 'removed_to'>>(
      'audit-newest-cut',
      `
      select sequence, hash, removed_to
      from audit_checkpoints
      where org_id = :org and cut
      order by sequence desc
      limit 1`,
      { org },
    );
    return row && { sequence: Number(row.sequence), hash: row.hash, removedTo: Number(row.removed_to ?? 0) };
  }

  /** Returns a page of checkpoints in their order, those without a number first. */
  async findPage(org: OrgId, after: CheckpointCursor, limit: number): Promise<StoredCheckpoint[]> {
    const rows = await this.pg.rows<CheckpointRow>(
      'audit-checkpoint-page',
      `
      select ${checkpointColumns}, c.hash as chain_hash
      from audit_checkpoints p
      left join audit_chain c on c.org_id = p.org_id and c.sequence = p.sequence
      where p.org_id = :org and (p.number, p.sequence, p.cut) > (:number::bigint, :sequence::bigint, :cut::boolean)
      order by p.number, p.sequence, p.cut
      limit :limit`,
      { org, number: after.number, sequence: after.sequence, cut: after.cut, limit },
    );
    return rows.map(storedOf);
  }

  /** Returns numbered checkpoints of several orgs, by org and number. */
  async findNumbered(places: readonly Pick<AnchoredCheckpoint, 'orgId' | 'number'>[]): Promise<AnchoredCheckpoint[]> {
    const rows = await this.pg.rows<CheckpointRow>(
      'audit-checkpoints-named',
      `
      select ${checkpointColumns}
      from unnest(:orgs::uuid[], :numbers::bigint[]) as wanted(org_id, number)
      join audit_checkpoints p on p.org_id = wanted.org_id and p.number = wanted.number and p.number > 0`,
      { orgs: places.map(({ orgId }) => orgId), numbers: places.map(({ number }) => number) },
    );
    return rows.map((row) => storedOf(row).numbered!);
  }

  /** Returns the hashes of several chains at the given sequences. */
  async chainHashes(
    places: readonly Pick<AnchoredCheckpoint, 'orgId' | 'sequence'>[],
  ): Promise<{ orgId: string; sequence: number; hash: string }[]> {
    const rows = await this.pg.rows<{ orgId: string; sequence: string; hash: string }>(
      'audit-chain-hashes',
      `
      select distinct c.org_id as "orgId", c.sequence, c.hash
      from unnest(:orgs::uuid[], :sequences::bigint[]) as wanted(org_id, sequence)
      join audit_chain c on c.org_id = wanted.org_id and c.sequence = wanted.sequence`,
      { orgs: places.map(({ orgId }) => orgId), sequences: places.map(({ sequence }) => sequence) },
    );
    return rows.map((row) => ({ ...row, sequence: Number(row.sequence) }));
  }
}

/** Parses a row. A row without a signature of its number gets an empty signature, which no key verifies. */
export function storedOf(row: CheckpointRow): StoredCheckpoint {
  const { org_id: orgId, hash, kid } = row;
  const [number, sequence, at] = [Number(row.number), Number(row.sequence), row.at.toISOString()];
  const plain = { orgId, sequence, hash, at, ...(row.cut && { cut: true as const }) };
  const dropped = row.cut ? { removedTo: Number(row.removed_to ?? 0) } : {};
  const numbered = {
    ...plain,
    ...dropped,
    number,
    prevHash: row.prev_hash ?? '',
    kid,
    signature: row.chain_signature ?? '',
  };
  return {
    plain,
    plainSignature: row.signature,
    kid,
    ...(number > 0 && { numbered }),
    ...(row.chain_hash && { chainHash: row.chain_hash }),
  };
}
