// The lower bound, without a server, checks or notifications, with a fixed number of open items. `none`: BullMQ add and
// a no-op process. `insert`: one prepared insert before them. `task`: one prepared statement that stores a task and its
// event, BullMQ add, and one statement in the process that ends both. `post`: like `none`, and the process signs the
// body and posts it to the receiver. Usage: node bare.mjs <database> <redis or none> <none, insert, task or post>
// [receiver]; it prints its port. GET /?seconds=4&open=200 returns the rate of a shot; &offered=200 instead of `open`
// returns the times at that rate per second.
import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { createPostgresBackend, createRedisBackend, Queue, setDefaultBackendFactory, Worker } from 'bullmq';
import pg from 'pg';
import { Pool } from 'undici';
import { statements, tables } from './statements.mjs';

const [database, redis, kind, receiver] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: database, max: 10 });
const queues = new pg.Pool({ connectionString: database, max: 8, options: '-c search_path=bullmq' });
setDefaultBackendFactory(redis === 'none' ? createPostgresBackend : createRedisBackend);
const connection = redis === 'none' ? queues : { url: redis, maxRetriesPerRequest: null };
await pool.query(tables);
const ends = kind === 'task';
// Each process has a separate queue.
const name = `bare_${kind}`;
const queue = new Queue(name, { connection });
const waiting = new Map();
const body = JSON.stringify({ text: 'x'.repeat(500) });
const key = createSecretKey(randomBytes(24));
const receivers = receiver && new Pool(receiver, { connections: 50 });

/** Posts the body with a signature, as Standard Webhooks describes it, without storage or retries. */
async function post(id) {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  const headers = {
    'content-type': 'application/json',
    'webhook-id': String(id),
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  };
  const answer = await receivers.request({ method: 'POST', path: '/', headers, body });
  await answer.body.dump();
}

const work = async ({ data: { id } }) => {
  if (kind === 'post') await post(id);
  if (ends) await pool.query({ ...statements.end, values: [id, body] });
  waiting.get(id)?.();
};
const worker = new Worker(name, work, { connection, concurrency: 50 });
await worker.waitUntilReady();
// Starts far from the ids of an earlier process.
let n = Date.now() * 4_000;

async function once() {
  const id = ++n;
  const at = performance.now();
  const done = new Promise((resolve) => waiting.set(id, resolve));
  if (ends || kind === 'insert')
    await pool.query({ ...(ends ? statements.open : statements.insert), values: [id, body] });
  await queue.add(name, { id }, { attempts: 1, removeOnComplete: true });
  await done;
  waiting.delete(id);
  return performance.now() - at;
}

async function shot({ seconds, open, offered }) {
  const times = [];
  const startedAt = performance.now();
  const until = startedAt + Number(seconds) * 1_000;
  if (offered) {
    const all = [];
    while (performance.now() < until) {
      all.push(once());
      await new Promise((resolve) => setTimeout(resolve, 1_000 / Number(offered)));
    }
    times.push(...(await Promise.all(all)));
  } else {
    const loop = async () => {
      while (performance.now() < until) times.push(await once());
    };
    await Promise.all(Array.from({ length: Number(open) }, loop));
  }
  const elapsed = (performance.now() - startedAt) / 1_000;
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.floor((times.length - 1) * share)];
  return { rps: times.length / elapsed, p50: at(0.5), p99: at(0.99), count: times.length };
}

const server = createServer((request, response) => {
  const { searchParams } = new URL(request.url, 'http://localhost');
  shot(Object.fromEntries(searchParams)).then(
    (result) => response.end(JSON.stringify(result)),
    (thrown) => response.writeHead(500).end(String(thrown)),
  );
});
server.listen(0, '127.0.0.1', () => console.log(`listening ${server.address().port}`));
process.on('SIGTERM', () => process.exit(0));
