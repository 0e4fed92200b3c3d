import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

const tables = `
  select c.oid::regclass::text as name, pg_total_relation_size(c.oid)::float8 as bytes
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  where c.relkind = 'r' and n.nspname = 'public'`;

/** Less WAL than this in 40 ms is written by the timers of a process, not by an operation. */
const quietBytes = 2_000;

/** Time in seconds in which the work of a gateway at rest is counted. */
const restSeconds = 3;

/** Reads what a gateway did in its database and its queue, and allocated. Its own statements are not counted. */
export class Counters {
  constructor(client, queue, allocations) {
    this.client = client;
    this.queue = queue;
    this.allocations = allocations;
  }

  static async open(url, queue, allocations) {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query('create extension if not exists pg_stat_statements');
    return new Counters(client, queue, allocations);
  }

  close() {
    this.allocations.close();
    return this.client.end();
  }

  async hasEnded(taskId) {
    const ends = await this.query('select from a2a_task_events where task_id = $1 and terminal', [taskId]);
    return ends.length > 0;
  }

  /**
   * Runs an operation a number of times, one after the other, and returns the counts of one. A statement counts when at
   * least half of the operations cause it. What the timers of the process do meanwhile is subtracted: it depends on the
   * speed of the machine.
   */
  async measure(operations, operation) {
    await this.settle();
    this.atRest ??= await this.measureRest();
    const before = await this.snapshot();
    await this.resetStatements();
    const startedAt = performance.now();
    await this.allocations.start();
    for (let n = 0; n < operations; n++) await operation();
    await this.settle();
    const allocated = await this.allocations.stop();
    const after = await this.snapshot();
    const seconds = (performance.now() - startedAt) / 1_000;
    const statements = (await this.statements())
      .map(({ query, calls, records }) => {
        const share = Math.max(0, 1 - ((this.atRest.calls.get(query) ?? 0) * seconds) / calls);
        return { query, calls: calls * share, records: records * share };
      })
      .filter(({ calls }) => calls >= operations / 2);
    const each = (count) => count / operations;
    const sum = (field) => each(statements.reduce((total, row) => total + row[field], 0));
    return {
      statements: sum('calls'),
      rows: each(growth(before.rows, after.rows)),
      'WAL records': sum('records'),
      'WAL bytes': each(after.wal - before.wal - this.atRest.wal * seconds),
      'stored bytes': each(growth(before.bytes, after.bytes)),
      'queue commands': each(after.commands - before.commands - this.atRest.commands * seconds),
      'allocated bytes': each(allocated),
      tables: Object.keys(after.bytes)
        .map((name) => ({ name, bytes: each(after.bytes[name] - (before.bytes[name] ?? 0)) }))
        .filter(({ bytes }) => bytes > 0),
      queries: statements.map(({ query, calls }) => ({ calls: each(calls), query })),
    };
  }

  /** Returns what the gateway does in a second while nothing happens; statements by their text. */
  async measureRest() {
    await this.resetStatements();
    const [wal, commands] = [await this.wal(), await this.queue.commands()];
    await sleep(restSeconds * 1_000);
    return {
      calls: new Map((await this.statements()).map(({ query, calls }) => [query, calls / restSeconds])),
      wal: ((await this.wal()) - wal) / restSeconds,
      commands: ((await this.queue.commands()) - commands) / restSeconds,
    };
  }

  resetStatements() {
    return this.query('select pg_stat_statements_reset()');
  }

  statements() {
    return this.query(
      `select query, sum(calls)::float8 as calls, sum(wal_records)::float8 as records
       from pg_stat_statements
       where dbid = (select oid from pg_database where datname = current_database())
         and query not like '%/* ledger */%'
         and query !~* '^(begin|commit|rollback)'
       group by query`,
    );
  }

  /** Waits until the database is quiet: the work that no answer waits for has ended too. */
  async settle() {
    for (let quiet = 0, last = -1; quiet < 5; await sleep(40)) {
      const now = await this.wal();
      quiet = now - last < quietBytes ? quiet + 1 : 0;
      last = now;
    }
  }

  async snapshot() {
    const list = await this.query(tables);
    const rows = {};
    for (const { name } of list) rows[name] = (await this.query(`select count(*)::float8 as n from ${name}`))[0].n;
    const bytes = Object.fromEntries(list.map((row) => [row.name, row.bytes]));
    return { rows, bytes, wal: await this.wal(), commands: await this.queue.commands() };
  }

  async wal() {
    return (await this.query(`select (pg_current_wal_insert_lsn() - '0/0')::float8 as position`))[0].position;
  }

  async query(text, values) {
    return (await this.client.query(`${text} /* ledger */`, values)).rows;
  }
}

function growth(before, after) {
  return Object.keys(after).reduce((total, name) => total + after[name] - (before[name] ?? 0), 0);
}
