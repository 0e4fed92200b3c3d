// The floor, so many open at once; nothing is served, checked or told. `insert`: one prepared insert, then BullMQ add and a no-op
// process. `task`: one prepared statement that keeps a task and its event, BullMQ add, and one in the process that ends both.
// node bare.mjs <database> <redis or none> <insert or task> <seconds> <open>; prints the rate, or the times for an offered rate as
// last argument.
import { createPostgresBackend, createRedisBackend, Queue, setDefaultBackendFactory, Worker } from 'bullmq';
import pg from 'pg';
import { statements, tables } from './statements.mjs';

const [database, redis, kind, seconds, most, offered] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: database, max: 10 });
const queues = new pg.Pool({ connectionString: database, max: 8, options: '-c search_path=bullmq' });
setDefaultBackendFactory(redis === 'none' ? createPostgresBackend : createRedisBackend);
const connection = redis === 'none' ? queues : { url: redis, maxRetriesPerRequest: null };
await pool.query(tables);
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

/** As warm as the server beside it, which has run for a while. */
const warmMs = 2_000;
const times = [];
const startedAt = performance.now() + warmMs;
const until = startedAt + Number(seconds) * 1_000;
const keep = (ms) => performance.now() > startedAt && times.push(ms);
if (offered) {
  const all = [];
  while (performance.now() < until) {
    all.push(once().then(keep));
    await new Promise((resolve) => setTimeout(resolve, 1_000 / Number(offered)));
  }
  await Promise.all(all);
} else {
  const loop = async () => {
    while (performance.now() < until) keep(await once());
  };
  await Promise.all(Array.from({ length: Number(most) }, loop));
}
times.sort((a, b) => a - b);
const at = (share) => times[Math.floor((times.length - 1) * share)];
console.log(JSON.stringify({ rate: times.length / Number(seconds), p50: at(0.5), p99: at(0.99) }));
await worker.close(true);
await queue.close();
process.exit(0);
