import pg from 'pg';
import { foldArtifacts } from '../../src/protocol/a2a/artifacts.js';
import type { Artifact } from '../../src/protocol/a2a/model.js';
import type { DeliveryRow, EventRow, Move, Rows, TaskRow } from './history.js';
import { eventRows, readLogs } from '../support/gateway/event-rows.js';

/**
 * A trigger that records every change of a task at the moment of the write, because later rows do not show it. A task
 * counts as stolen when another process takes it while the lease of its holder has not ended and the presence lock of
 * the holder exists. A broken presence connection is open again within milliseconds, after the check of the claim and
 * before this trigger runs, so only a connection that was open well before the claim counts.
 */
const watch = `
  create schema chaos;
  create table chaos.moves (
    at timestamptz not null, task_id uuid not null,
    from_state text, from_seq integer, from_epoch integer,
    to_state text, to_seq integer, to_epoch integer,
    stolen boolean not null, remembered text);
  create function chaos.note() returns trigger language plpgsql as $$ begin
    insert into chaos.moves values (
      clock_timestamp(), new.id,
      old.status_state, old.seq, old.lease_epoch,
      new.status_state, new.seq, new.lease_epoch,
      coalesce(new.lease_owner <> old.lease_owner, false) and old.lease_until > now() and exists (
        select from pg_locks l join pg_stat_activity line using (pid)
        where l.locktype = 'advisory' and l.objid = old.lease_owner::bigint::oid
        and l.database = (select oid from pg_database where datname = current_database())
        and line.backend_start < statement_timestamp() - interval '2 seconds'),
      case when new.memo::text is distinct from old.memo::text then new.memo->>'messageId' end);
    return null; end $$;
  create trigger chaos_moves after update on a2a_tasks for each row when (
    old.status_state is distinct from new.status_state
    or old.seq is distinct from new.seq
    or old.lease_epoch is distinct from new.lease_epoch
    or old.lease_owner is distinct from new.lease_owner
    or old.memo::text is distinct from new.memo::text) execute function chaos.note()`;

/** The database connections of the checker. They continue after restarts of the server. */
export class Rowkeeper {
  private pool: pg.Pool;

  constructor(url: string) {
    this.pool = poolOf(url);
  }

  /** Connects to a new address after a restart of the server. */
  moveTo(url: string): void {
    const old = this.pool;
    this.pool = poolOf(url);
    void old.end().catch(() => undefined);
  }

  async watch(): Promise<void> {
    await this.pool.query(watch);
  }

  async sql<Row extends object = any>(text: string, values: unknown[] = []): Promise<Row[]> {
    return (await this.pool.query(text, values)).rows as Row[];
  }

  async read(): Promise<Rows> {
    const [tasks, events, moves, deliveries] = await Promise.all([
      this.tasks(),
      this.sql<EventRow>(
        `select task_id as "taskId", seq, terminal, ${ms('at')} as at from ${eventRows} order by task_id, seq`,
      ),
      this.moves(),
      this.deliveries(),
    ]);
    return { tasks, events, moves, deliveries };
  }

  close(): Promise<void> {
    return this.pool.end();
  }

  private async tasks(): Promise<TaskRow[]> {
    const rows = await this.sql<Omit<TaskRow, 'said'> & { artifacts: Artifact[]; folded: number }>(
      `select id, agent_name as agent, status_state as state, seq, lease_epoch as epoch,
         lease_until is not null or next_at is not null as held,
         artifacts, folded_seq as folded, coalesce(status_message::text, '') as why
       from a2a_tasks
       order by created_at, id`,
    );
    const logs = await readLogs((text, values) => this.sql(text, values));
    return rows.map(({ artifacts, folded, ...row }) => {
      const later = (logs.get(row.id) ?? []).filter(({ seq }) => seq > folded);
      const updates = later.map(({ body }) => body);
      return { ...row, said: wordsOf(foldArtifacts(artifacts, updates)) };
    });
  }

  private async moves(): Promise<Move[]> {
    const rows = await this.sql(
      `select task_id as id, ${ms('at')} as at, from_state, from_seq, from_epoch, to_state, to_seq, to_epoch,
         stolen, remembered
       from chaos.moves
       order by at`,
    );
    return rows.map((row) => ({
      taskId: row.id,
      at: row.at,
      from: { state: row.from_state, seq: row.from_seq, epoch: row.from_epoch },
      to: { state: row.to_state, seq: row.to_seq, epoch: row.to_epoch },
      stolen: row.stolen,
      ...(row.remembered !== null && { remembered: row.remembered }),
    }));
  }

  private async deliveries(): Promise<DeliveryRow[]> {
    const rows = await this.sql<DeliveryRow & { deliveredAt: number | null }>(
      `select id, task_id as "taskId", config_id as "configId", seq, status, (
         select min(${ms('a.at')})
         from webhook_attempts a
         where a.delivery_id = d.id and a.status between 200 and 299) as "deliveredAt"
       from webhook_deliveries d
       order by task_id, config_id, seq`,
    );
    return rows.map(({ deliveredAt, ...row }) => ({ ...row, ...(deliveredAt !== null && { deliveredAt }) }));
  }
}

function poolOf(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString, max: 3, application_name: 'chaos', connectionTimeoutMillis: 5_000 });
  pool.on('error', () => undefined);
  return pool;
}

function ms(column: string): string {
  return `(extract(epoch from ${column}) * 1000)::float8`;
}

function wordsOf(artifacts: readonly Artifact[]): string {
  return artifacts.flatMap(({ parts }) => parts.map((part) => part.text ?? '')).join('');
}
