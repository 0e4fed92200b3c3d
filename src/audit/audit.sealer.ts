import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { systemClock } from '../kernel/clock.js';
import type { OrgId } from '../kernel/ids.js';
import { Pg } from '../platform/database/pg.js';
import { Sweeps, type Sweeper } from '../platform/jobs/handles-job.decorator.js';
import { Metrics, mostCounted, type Waiting } from '../platform/telemetry/metrics.js';
import { AuditCheckpoints } from './audit-checkpoints.js';
import { chainHash, genesisHash, type ChainState } from './chain.js';

const batch = 500;
const checkpointEveryMs = 60_000;

/** Forces an index scan. Other plans read the deleted rows of earlier batches again each time. */
export const alongTheKey = 'set local enable_bitmapscan = off; set local enable_seqscan = off';
export const waitingEvents = `select e.id, e.event from audit_pending p join audit_events e on e.id = p.event_id
  where p.org_id = $1 order by p.event_id limit ${batch}`;

/** SQL for the end of a chain. It takes two index lookups for any length of the chain. */
export const chainHead = `(select sequence, hash from audit_chain where org_id = $1 order by sequence desc limit 1)
  union all (select sequence, hash from audit_checkpoints where org_id = $1 and cut order by sequence desc limit 1)
  order by sequence desc limit 1`;

/**
 * Gives waiting events their sequence and hash, without gaps and within a second. One sealer runs for each org at a
 * time.
 */
@Injectable()
@Sweeps('audit.seal')
export class AuditSealer implements Sweeper, OnModuleInit {
  readonly everyMs = 500;
  private readonly checkpointed = new Map<string, number>();

  constructor(
    private readonly pg: Pg,
    private readonly checkpoints: AuditCheckpoints,
    private readonly metrics: Metrics,
  ) {}

  onModuleInit(): void {
    this.metrics.waits('audit', () => this.waiting());
  }

  /**
   * Returns the number of events that are not sealed, and the longest time that the first event of an org has waited.
   * Uses the index.
   */
  private async waiting(): Promise<Waiting> {
    const [row] = await this.pg.rows<Waiting>(
      'audit-waits',
      `select (select count(*) from (select from audit_pending limit ${mostCounted}) p)::int as count,
         (select coalesce(extract(epoch from now() - min(first.since)), 0)::float8 from orgs o cross join lateral (
            select p.since from audit_pending p where p.org_id = o.id order by p.event_id limit 1) first) as "lagSeconds"`,
    );
    return row!;
  }

  async sweep(): Promise<void> {
    const orgs = await this.pg.rows<{ org_id: OrgId }>(
      'audit-pending-orgs',
      'select id as org_id from orgs o where exists (select from audit_pending p where p.org_id = o.id)',
    );
    for (const { org_id: org } of orgs) await this.sealOrg(org, false);
  }

  /**
   * Seals all waiting events of an org. With `wait` it waits for another sealer of the org; without, it leaves the
   * work to it.
   */
  async sealOrg(org: OrgId, wait: boolean): Promise<void> {
    const client = await this.pg.connect();
    let count = 0;
    try {
      for (let sealed = batch; sealed === batch; count += sealed) sealed = await this.sealBatch(client, org, wait);
    } finally {
      client.release();
    }
    if (count > 0) await this.checkpoint(org);
  }

  private async sealBatch(client: PoolClient, org: OrgId, wait: boolean): Promise<number> {
    await client.query(`begin; ${alongTheKey}`);
    try {
      const lock = `hashtextextended('audit:' || $1::text, 0)`;
      const got = await client.query<{ got: boolean }>(
        wait
          ? `select true as got from pg_advisory_xact_lock(${lock})`
          : `select pg_try_advisory_xact_lock(${lock}) as got`,
        [org],
      );
      const sealed = got.rows[0]?.got ? await this.seal(client, org) : 0;
      await client.query('commit');
      return sealed;
    } catch (error) {
      await client.query('rollback').catch(() => undefined);
      throw error;
    }
  }

  private async seal(client: PoolClient, org: OrgId): Promise<number> {
    const waiting = await client.query<{ id: string; event: unknown }>(waitingEvents, [org]);
    if (waiting.rows.length === 0) return 0;
    const head = await client.query<{ sequence: string; hash: string }>(chainHead, [org]);
    let state: ChainState = head.rows[0]
      ? { sequence: Number(head.rows[0].sequence), hash: head.rows[0].hash }
      : { sequence: 0, hash: genesisHash };
    const links = waiting.rows.map(({ id, event }) => {
      const prevHash = state.hash;
      state = { sequence: state.sequence + 1, hash: chainHash(event, prevHash) };
      return { event_id: id, sequence: state.sequence, prev_hash: prevHash, hash: state.hash };
    });
    await client.query(
      `with links as (select * from jsonb_to_recordset($2::jsonb) as l(event_id uuid, sequence bigint, prev_hash text, hash text)),
            done as (delete from audit_pending where org_id = $1 and event_id = any($3::uuid[]))
       insert into audit_chain (org_id, sequence, event_id, prev_hash, hash) select $1, sequence, event_id, prev_hash, hash from links`,
      [org, JSON.stringify(links), links.map(({ event_id: event }) => event)],
    );
    return links.length;
  }

  private async checkpoint(org: OrgId): Promise<void> {
    const now = systemClock.now();
    if (now - (this.checkpointed.get(org) ?? 0) < checkpointEveryMs) return;
    this.checkpointed.set(org, now);
    await this.checkpoints.sign(org);
  }
}
