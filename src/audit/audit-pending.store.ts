import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { OrgId } from '../kernel/ids.js';
import { Pg } from '../platform/database/pg.js';
import { positional } from '../platform/database/sql.js';
import { mostCounted, type Waiting } from '../platform/telemetry/metrics.js';
import { wholeEvent } from './audit-event.store.js';
import { linksOf, type ChainState } from './chain.js';

/** Number of events that are sealed in one transaction. */
const sealedAtOnce = 500;

/** Forces an index scan. Other plans read the deleted rows of earlier batches again each time. */
export const alongTheKey = 'set local enable_bitmapscan = off; set local enable_seqscan = off';

export const waitingEvents = `
  select e.id, ${wholeEvent} as event
  from audit_pending p join audit_events e on e.id = p.event_id
  where p.org_id = :org
  order by p.event_id
  limit ${sealedAtOnce}`;

/** SQL for the end of a chain. It takes two index lookups for any length of the chain. */
export const chainHead = `
  (select sequence, hash from audit_chain where org_id = :org order by sequence desc limit 1)
  union all
  (select sequence, hash from audit_checkpoints where org_id = :org and cut order by sequence desc limit 1)
  order by sequence desc
  limit 1`;

/** Reads the events that wait for their place in the chain, and seals them. */
@Injectable()
export class AuditPendingStore {
  constructor(private readonly pg: Pg) {}

  /**
   * Returns the number of events that are not sealed, and the longest time that the first event of an org has waited.
   * Uses the index.
   */
  async waiting(): Promise<Waiting> {
    const [row] = await this.pg.rows<Waiting>(
      'audit-waits',
      `
      select
        (select count(*) from (select from audit_pending limit ${mostCounted}) p)::int as count,
        (select coalesce(extract(epoch from now() - min(first.since)), 0)::float8
         from orgs o
         cross join lateral (
           select p.since from audit_pending p where p.org_id = o.id order by p.event_id limit 1
         ) first) as "lagSeconds"`,
    );
    return row!;
  }

  /** Returns the orgs with waiting events. */
  async pendingOrgs(): Promise<OrgId[]> {
    const rows = await this.pg.rows<{ org: OrgId }>(
      'audit-pending-orgs',
      `
      select id as org
      from orgs o
      where exists (select from audit_pending p where p.org_id = o.id)`,
    );
    return rows.map(({ org }) => org);
  }

  /**
   * Seals all waiting events of an org and returns their number. With `wait` it waits for another sealer of the org;
   * without, it leaves the work to it.
   */
  async sealOrg(org: OrgId, wait: boolean): Promise<number> {
    const client = await this.pg.connect();
    let count = 0;
    try {
      for (let sealed = sealedAtOnce; sealed === sealedAtOnce; count += sealed)
        sealed = await this.sealBatch(client, org, wait);
    } finally {
      client.release();
    }
    return count;
  }

  private async sealBatch(client: PoolClient, org: OrgId, wait: boolean): Promise<number> {
    try {
      await client.query(`begin; ${alongTheKey}`);
      const sealed = (await this.lockChain(client, org, wait)) ? await this.extendChain(client, org) : 0;
      await client.query('commit');
      return sealed;
    } catch (error) {
      await client.query('rollback').catch(() => undefined);
      throw error;
    }
  }

  /** Locks the chain of an org until the transaction ends. Returns false when another sealer has it. */
  private async lockChain(client: PoolClient, org: OrgId, wait: boolean): Promise<boolean> {
    const key = `hashtextextended('audit:' || :org::text, 0)`;
    const statement = wait
      ? `select true as got from pg_advisory_xact_lock(${key})`
      : `select pg_try_advisory_xact_lock(${key}) as got`;
    const { rows } = await client.query<{ got: boolean }>(positional(statement, { org }));
    return rows[0]!.got;
  }

  private async extendChain(client: PoolClient, org: OrgId): Promise<number> {
    const waiting = await client.query<{ id: string; event: unknown }>(positional(waitingEvents, { org }));
    if (waiting.rows.length === 0) return 0;
    const { rows } = await client.query<{ sequence: string; hash: string }>(positional(chainHead, { org }));
    const head: ChainState | undefined = rows[0] && { sequence: Number(rows[0].sequence), hash: rows[0].hash };
    const links = linksOf(waiting.rows, head);
    await client.query(
      positional(
        `
        with links as (
          select *
          from jsonb_to_recordset(:links::jsonb) as l("eventId" uuid, sequence bigint, "prevHash" text, hash text)
        ), done as (
          delete from audit_pending where org_id = :org and event_id = any(:events::uuid[])
        )
        insert into audit_chain (org_id, sequence, event_id, prev_hash, hash, whole)
        select :org, sequence, "eventId", "prevHash", hash, true
        from links`,
        { org, links: JSON.stringify(links), events: links.map(({ eventId }) => eventId) },
      ),
    );
    return links.length;
  }
}
