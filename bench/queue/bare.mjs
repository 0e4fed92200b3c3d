// The floor, so many open at once; nothing is served, checked or told. `insert`: one prepared insert, then BullMQ add and a no-op
// process. `task`: one prepared statement that keeps a task and its event, BullMQ add, and one in the process that ends both.
// node bare.mjs <database> <redis or none> <insert or task> <seconds> <open>; prints the rate, or the times for an offered rate as
// last argument.
import { createPostgresBackend, createRedisBackend, Queue, setDefaultBackendFactory, Worker } from 'bullmq';
import pg from 'pg';

const [database, redis, kind, seconds, most, offered] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: database, max: 10 });
const queues = new pg.Pool({ connectionString: database, max: 8, options: '-c search_path=bullmq' });
setDefaultBackendFactory(redis === 'none' ? createPostgresBackend : createRedisBackend);
const connection = redis === 'none' ? queues : { url: redis, maxRetriesPerRequest: null };
await pool.query(
  `create table if not exists bare (id bigint primary key, state text not null default 'new', body json not null);
   create table if not exists bare_events (id bigint, seq integer, body json not null, primary key (id, seq))`,
);
const statements = {
  insert: { name: 'insert', text: 'insert into bare (id, body) values ($1, $2)' },
  open: {
    name: 'open',
    text: `with t as (insert into bare (id, body) values ($1, $2) returning id)
      insert into bare_events select id, 1, $2 from t`,
  },
  end: {
    name: 'end',
    text: `with t as (update bare set state = 'done' where id = $1 and state = 'new' returning id)
      insert into bare_events select id, 2, $2 from t`,
  },
};
const ends = kind === 'task';
const queue = new Queue('bare', { connection });
const waiting = new Map();
const body = JSON.stringify({ text: 'x'.repeat(500) });
const work = async ({ data: { id } }) => {
  if (ends) await pool.query({ ...statements.end, values: [id, body] });
  waiting.get(id)?.();
};
const worker = new Worker('bare', work, { connection, concurrency: 50 });
await worker.waitUntilReady();
let n = Date.now() * 1_000;

async function once() {
  const id = ++n;
  const at = performance.now();
  const done = new Promise((resolve) => waiting.set(id, resolve));
  await pool.query({ ...(ends ? statements.open : statements.insert), values: [id, body] });
  await queue.add('bare', { id }, { attempts: 1, removeOnComplete: true });
  await done;
  waiting.delete(id);
  return performance.now() - at;
}

const times = [];
const until = performance.now() + Number(seconds) * 1_000;
if (offered) {
  const all = [];
  while (performance.now() < until) {
    all.push(once().then((ms) => times.push(ms)));
    await new Promise((resolve) => setTimeout(resolve, 1_000 / Number(offered)));
  }
  await Promise.all(all);
} else {
  const loop = async () => {
    while (performance.now() < until) times.push(await once());
  };
  await Promise.all(Array.from({ length: Number(most) }, loop));
}
times.sort((a, b) => a - b);
const at = (share) => times[Math.floor((times.length - 1) * share)];
console.log(JSON.stringify({ rate: times.length / Number(seconds), p50: at(0.5), p99: at(0.99) }));
await worker.close(true);
await queue.close();
process.exit(0);
