import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import { positional } from '../../platform/database/sql.js';
import { snapshotIdleTimeout } from '../../platform/http/export-stream.js';
import { wholeEvent } from '../audit-event.store.js';
import type { ChainLink } from '../chain.js';
import { PersonalReader } from '../personal/personal-reader.js';
import {
  stampedCheckpoints,
  stampedOf,
  type StampedCheckpoint,
  type StampedRow,
} from '../timestamps/audit-timestamp.store.js';

const perFetch = 200;

/** Reads one row when an erasure is recorded after the last numbered checkpoint. */
const unsignedErasure = `
  select from audit_pending p
  join audit_events e on e.id = p.event_id
  where p.org_id = :org and e.type = 'audit.erased'
  union all
  select from audit_chain c
  join audit_events e on e.id = c.event_id
  where c.org_id = :org and e.type = 'audit.erased' and c.sequence > coalesce((
    select max(sequence) from audit_checkpoints where org_id = :org and number > 0
  ), 0)
  limit 1`;

/** The rows of an org's audit as of one moment, each kind in its order. */
export interface AuditSnapshot {
  /** Returns whether a checkpoint covers the events of all erasures. */
  signsErasures(): Promise<boolean>;
  checkpoints(): AsyncGenerator<StampedCheckpoint>;
  events(): AsyncGenerator<ChainLink>;
}

/** Reads the whole audit of an org at the speed of its reader. Changes no row. */
@Injectable()
export class AuditExportStore {
  constructor(
    private readonly pg: Pg,
    private readonly personal: PersonalReader,
  ) {}

  /** Runs work on a snapshot. PostgreSQL ends it when the work stalls. */
  async *inSnapshot(org: OrgId, work: (snapshot: AuditSnapshot) => AsyncGenerator<string>): AsyncGenerator<string> {
    const client = await this.pg.connect();
    let failure: Error | undefined;
    try {
      await client.query('begin isolation level repeatable read read only');
      await client.query(`set local idle_in_transaction_session_timeout = '${snapshotIdleTimeout}'`);
      yield* work({
        signsErasures: async () => (await client.query(positional(unsignedErasure, { org }))).rows.length === 0,
        checkpoints: () => checkpointsOf(client, org),
        events: () => this.eventsOf(client, org),
      });
    } catch (error) {
      failure = error as Error;
      throw error;
    } finally {
      await client.query('rollback').catch((error: Error) => (failure = error));
      client.release(failure);
    }
  }

  private async *eventsOf(client: PoolClient, org: OrgId): AsyncGenerator<ChainLink> {
    const select = `
      select c.sequence, c.prev_hash as "prevHash", c.hash, ${wholeEvent} as event
      from audit_chain c left join audit_events e on e.id = c.event_id
      where c.org_id = :org
      order by c.sequence`;
    type Row = Omit<ChainLink, 'sequence'> & { sequence: string };
    for await (const rows of pages<Row>(client, 'links', select, org)) {
      const events = rows.map(({ event }) => event);
      const facts = await this.personal.read(org, events, client);
      for (const [index, row] of rows.entries()) {
        const { opened } = facts[index]!;
        yield { ...row, sequence: Number(row.sequence), ...(opened.length > 0 && { opened }) };
      }
    }
  }
}

/** Reads the numbered checkpoints. Those of the version before numbers have no signature that an export could show. */
async function* checkpointsOf(client: PoolClient, org: OrgId): AsyncGenerator<StampedCheckpoint> {
  const select = `${stampedCheckpoints}
  order by p.number`;
  for await (const rows of pages<StampedRow>(client, 'points', select, org)) yield* rows.map(stampedOf);
}

async function* pages<Row extends object>(
  client: PoolClient,
  cursor: string,
  select: string,
  org: OrgId,
): AsyncGenerator<Row[]> {
  await client.query(positional(`declare ${cursor} no scroll cursor for ${select}`, { org }));
  for (;;) {
    const { rows } = await client.query<Row>(`fetch ${perFetch} from ${cursor}`);
    yield rows;
    if (rows.length < perFetch) return;
  }
}
