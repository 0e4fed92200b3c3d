import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import { positional } from '../../platform/database/sql.js';
import { mostCounted, type Waiting } from '../../platform/telemetry/metrics.js';
import type { AnchorKind } from './anchor-sinks.js';
import { checkpointColumns, storedOf, type CheckpointRow } from '../audit-checkpoint.store.js';
import type { AnchoredCheckpoint } from '../checkpoint.js';

const perOrg = 50;
const perPage = 500;
/** SQL for the checkpoints of each org that an anchor has not taken yet: the first ones, or the newest one. */
const notTaken = (which: 'first' | 'newest'): string => `
      from orgs o
      cross join lateral (
        select *
        from audit_checkpoints c
        where c.org_id = o.id and c.number > coalesce((
          select a.number from audit_anchors a where a.org_id = o.id and a.sink = :sink
        ), 0)
        ${which === 'first' ? `order by c.number limit ${perOrg}` : 'order by c.number desc limit 1'}
      ) p`;

/** Stores the last checkpoint of each org that each anchor took. */
@Injectable()
export class AuditAnchorStore {
  constructor(private readonly pg: Pg) {}

  /**
   * Returns a page of the checkpoints that an anchor has not taken, for each org in order of their numbers. Of those
   * without a timestamp it returns the newest one of each org, which covers the others: each checkpoint contains the
   * hash of the one before it. An authority that was away, or is new, then gets one request for each org.
   */
  async due(sink: AnchorKind, without: readonly OrgId[]): Promise<AnchoredCheckpoint[]> {
    const which = sink === 'timestamp' ? 'newest' : 'first';
    const rows = await this.pg.rows<CheckpointRow>(
      `audit-anchor-due-${which}`,
      `
      select ${checkpointColumns}${notTaken(which)}
      where o.id <> all(:without::uuid[])
      limit ${perPage}`,
      { sink, without },
    );
    return rows.map((row) => storedOf(row).numbered!);
  }

  /** Records that an anchor took a checkpoint. Several processes may have delivered it. */
  async recordTaken(sink: AnchorKind, { orgId, number }: AnchoredCheckpoint): Promise<void> {
    await this.pg.rows(
      'audit-anchor-took',
      `
      insert into audit_anchors as a (org_id, sink, number)
      values (:orgId, :sink, :number)
      on conflict (org_id, sink) do update set number = greatest(a.number, excluded.number), at = now()`,
      { orgId, sink, number },
    );
  }

  /** Returns whether every anchor has the checkpoints of an org up to a number. */
  async haveAll(client: PoolClient, org: OrgId, number: number, sinks: readonly AnchorKind[]): Promise<boolean> {
    const { rows } = await client.query<{ have: boolean }>(
      positional(
        `
        select coalesce(bool_and(coalesce(a.number, 0) >= :number::bigint), true) as have
        from unnest(:sinks::text[]) wanted(sink)
        left join audit_anchors a on a.org_id = :org and a.sink = wanted.sink`,
        { org, number, sinks },
      ),
    );
    return rows[0]!.have;
  }

  /** Returns how many checkpoints an anchor has not taken, and how long the oldest of them has waited. */
  async waiting(sink: AnchorKind): Promise<Waiting> {
    const [row] = await this.pg.rows<Waiting>(
      'audit-anchor-waits',
      `
      select count(*)::int as count, coalesce(extract(epoch from now() - min(at)), 0)::float8 as "lagSeconds"
      from (select p.at${notTaken('first')} limit ${mostCounted}) due`,
      { sink },
    );
    return row!;
  }
}
