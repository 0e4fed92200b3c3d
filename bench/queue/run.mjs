// An asynchronous send from its request to its completed task, beside bare loops of prepared statements and BullMQ add and process:
// one run, in turn, on Redis and on PostgreSQL. BACKENDS=redis,postgres ROUNDS=5 SECONDS_PER_SHOT=4
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Client } from 'undici';
import { exchange, show, spread } from '../lib/load.mjs';
import { cpuMicros, json, root, startRialto } from '../lib/processes.mjs';
import { startPostgres, startRedis } from '../lib/services.mjs';

const rounds = Number(process.env.ROUNDS ?? 5);
const seconds = Number(process.env.SECONDS_PER_SHOT ?? 4);
const backends = (process.env.BACKENDS ?? 'redis,postgres').split(',');
const open = 200;
const offered = 200;
const words = 'x'.repeat(500);

const postgres = await startPostgres();
const redis = backends.includes('redis') ? await startRedis() : undefined;
if (backends.includes('redis') && !redis) console.log('no redis-server here: only the PostgreSQL queue is measured');

try {
  for (const backend of backends.filter((name) => name === 'postgres' || redis)) await measure(backend);
} finally {
  redis?.stop();
  await postgres.stop();
}

async function measure(backend) {
  const database = await postgres.database(`queue_${backend}`);
  const queueEnv = backend === 'redis' ? { REDIS_URL: redis.url } : { REDIS_URL: '' };
  const rialto = await startRialto({ DATABASE_URL: database, ...queueEnv });
  const pool = new pg.Pool({ connectionString: database, max: 2, options: '-c enable_seqscan=off' });
  try {
    const published = { name: 'echo', description: 'x', executor: { kind: 'echo' }, a2a_enabled: true };
    await json(`${rialto.url}/api/a2a/published`, { token: rialto.token, body: published });
    const bare = (kind, ...more) => {
      const queue = backend === 'redis' ? redis.url : 'none';
      const args = [join(root, 'bench/queue/bare.mjs'), database, queue, kind, String(seconds), String(open), ...more];
      return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }));
    };
    await flood(rialto, pool, 2);
    const shots = { ours: [], insert: [], task: [], oursAt: [], bareAt: [] };
    for (let round = 0; round < rounds; round++) {
      shots.ours.push(await flood(rialto, pool, seconds));
      shots.insert.push(bare('insert'));
      shots.task.push(bare('task'));
      shots.oursAt.push(await drip(rialto, pool, seconds));
      shots.bareAt.push(bare('insert', String(offered)));
    }
    const of = (list, field) => show(spread(list.map((shot) => shot[field])));
    const to = (kind) => show(spread(shots.ours.map((shot, index) => shot.rate / shots[kind][index].rate)));
    console.log(
      `\nqueue on ${backend}: ${rounds} rounds of ${seconds} s, Node ${process.version}; median (least to most)`,
    );
    console.log(
      `  ${open} open: completed to a task and its end kept without a server ${to('task')}, to one insert ${to('insert')}`,
    );
    console.log(`    Rialto ${of(shots.ours, 'rate')} a second, ${of(shots.ours, 'cpu')} µs of CPU each`);
    console.log(`    task ${of(shots.task, 'rate')} a second    insert ${of(shots.insert, 'rate')} a second`);
    console.log(`  ${offered} a second: Rialto p50 ms ${of(shots.oursAt, 'p50')} p99 ${of(shots.oursAt, 'p99')}`);
    console.log(`               bare   p50 ms ${of(shots.bareAt, 'p50')} p99 ${of(shots.bareAt, 'p99')}`);
  } finally {
    await pool.end();
    await rialto.stop();
  }
}

/** Sends asynchronously over one connection; each resolves with the id of its task. */
function sender({ url, token }) {
  const client = new Client(url, { pipelining: 1 });
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  const part = { role: 'ROLE_USER', parts: [{ text: words }] };
  let n = 0;
  const send = async () => {
    const params = { message: { messageId: `m${n++}`, ...part }, configuration: { returnImmediately: true } };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params });
    const { status, text } = await exchange(client, { path: '/a2a/agents/echo', method: 'POST', headers, body });
    const [, id] = /"task":\{"id":"([\w-]+)"/.exec(text) ?? [];
    if (status !== 200 || !id) throw new Error(`a send answered ${status}: ${text}`);
    return id;
  };
  return { send, close: () => client.close() };
}

/** As many as are completed with so many open at once. */
async function flood(rialto, pool, forSeconds) {
  const senders = Array.from({ length: 50 }, () => sender(rialto));
  // Only what is not known to be completed is looked at, so that counting costs the same however long it goes on.
  let cursor = await senders[0].send();
  const counts = { sent: 0, completed: 0 };
  let known = 0;
  const count = async () => {
    const { rows } = await pool.query({
      name: 'done',
      text: `select id, status_state = 'completed' as done from a2a_tasks where id > $1 order by id`,
      values: [cursor],
    });
    counts.completed = known + rows.filter(({ done }) => done).length;
    const firstOpen = rows.findIndex(({ done }) => !done);
    // Whoever commits late may have an id before those that are seen.
    const settled = (firstOpen === -1 ? rows.length : firstOpen) - 2 * open;
    if (settled <= 0) return;
    known += settled;
    cursor = rows[settled - 1].id;
  };
  const cpuBefore = cpuMicros(rialto.pid);
  const startedAt = performance.now();
  const until = startedAt + forSeconds * 1_000;
  let sending = true;
  const counting = (async () => {
    while (sending || counts.completed < counts.sent) {
      await count();
      await sleep(25);
    }
    return performance.now();
  })();
  const loop = async ({ send }) => {
    while (performance.now() < until) {
      if (counts.sent - counts.completed >= open) await sleep(2);
      else {
        counts.sent++;
        await send();
      }
    }
  };
  await Promise.all(senders.map(loop));
  sending = false;
  const endedAt = await counting;
  await Promise.all(senders.map(({ close }) => close()));
  const cpu = (cpuMicros(rialto.pid) - cpuBefore) / counts.sent;
  return { rate: counts.sent / ((endedAt - startedAt) / 1_000), cpu };
}

/** Times from request to completed task at an offered rate, by the clocks of one machine. */
async function drip(rialto, pool, forSeconds) {
  const senders = Array.from({ length: 50 }, () => sender(rialto));
  const sent = [];
  const until = performance.now() + forSeconds * 1_000;
  while (performance.now() < until) {
    const at = Date.now();
    sent.push(senders[sent.length % senders.length].send().then((id) => ({ id, at })));
    await sleep(1_000 / offered);
  }
  const all = await Promise.all(sent);
  await Promise.all(senders.map(({ close }) => close()));
  const ids = all.map(({ id }) => id);
  for (;;) {
    const { rows } = await pool.query(
      `select id, status_timestamp as at from a2a_tasks where id = any($1) and status_state = 'completed'`,
      [ids],
    );
    if (rows.length < ids.length) {
      await sleep(50);
      continue;
    }
    const done = new Map(rows.map(({ id, at }) => [id, at.getTime()]));
    const times = all.map(({ id, at }) => done.get(id) - at).sort((a, b) => a - b);
    const at = (share) => times[Math.floor((times.length - 1) * share)];
    return { p50: at(0.5), p99: at(0.99) };
  }
}
