// An asynchronous send from its request to its completed task, beside a server written by hand and bare loops of prepared statements and
// BullMQ add and process: one run, in turn, on Redis and on PostgreSQL. BACKENDS=redis,postgres ROUNDS=5 SECONDS_PER_SHOT=4
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Client } from 'undici';
import { exchange, show, spread } from '../lib/load.mjs';
import { cpuMicros, json, root, start, startRialto } from '../lib/processes.mjs';
import { startPostgres, startRedis } from '../lib/services.mjs';

const rounds = Number(process.env.ROUNDS ?? 5);
const seconds = Number(process.env.SECONDS_PER_SHOT ?? 4);
const backends = (process.env.BACKENDS ?? 'redis,postgres').split(',');
const open = 200;
const offered = 200;
const words = 'x'.repeat(500);
const endsOfTasks = {
  name: 'ends',
  text: 'select task_id as id from a2a_task_events where task_id = any($1) and terminal',
};
const endsByHand = { name: 'by-hand', text: 'select id from bare_events where id = any($1) and seq = 2' };

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
  const rialto = {
    ...(await startRialto({ DATABASE_URL: database, ...queueEnv })),
    path: '/a2a/agents/echo',
    ends: endsOfTasks,
  };
  const pool = new pg.Pool({ connectionString: database, max: 2, options: '-c enable_seqscan=off' });
  const queue = backend === 'redis' ? redis.url : 'none';
  const byHand = await startByHand(database, queue);
  try {
    const published = { name: 'echo', description: 'x', executor: { kind: 'echo' }, a2a_enabled: true };
    await json(`${rialto.url}/api/a2a/published`, { token: rialto.token, body: published });
    const bare = (kind, ...more) => {
      const args = [join(root, 'bench/queue/bare.mjs'), database, queue, kind, String(seconds), String(open), ...more];
      return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }));
    };
    await flood(rialto, pool, 2);
    await flood(byHand, pool, 2);
    const shots = { ours: [], served: [], insert: [], task: [], oursAt: [], bareAt: [] };
    for (let round = 0; round < rounds; round++) {
      shots.ours.push(await flood(rialto, pool, seconds));
      shots.served.push(await flood(byHand, pool, seconds));
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
      `  ${open} open: completed to a server written by hand ${to('served')}, without a server to a task and its end kept ${to('task')}, to one insert ${to('insert')}`,
    );
    console.log(`    Rialto ${of(shots.ours, 'rate')} a second, ${of(shots.ours, 'cpu')} µs of CPU each`);
    console.log(`    by hand ${of(shots.served, 'rate')} a second, ${of(shots.served, 'cpu')} µs of CPU each`);
    console.log(`    task ${of(shots.task, 'rate')} a second    insert ${of(shots.insert, 'rate')} a second`);
    console.log(`  ${offered} a second: Rialto p50 ms ${of(shots.oursAt, 'p50')} p99 ${of(shots.oursAt, 'p99')}`);
    console.log(`               bare   p50 ms ${of(shots.bareAt, 'p50')} p99 ${of(shots.bareAt, 'p99')}`);
  } finally {
    await pool.end();
    await byHand.stop();
    await rialto.stop();
  }
}

async function startByHand(database, queue) {
  const server = await start('bench/queue/served.mjs', { args: [database, queue], ready: /listening (\d+)/ });
  return { ...server, url: `http://127.0.0.1:${server.match[1]}`, path: '/', ends: endsByHand };
}

/** Sends asynchronously over one connection; each resolves with the id of its task. */
function sender({ url, path, token }) {
  const client = new Client(url, { pipelining: 1 });
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  const part = { role: 'ROLE_USER', parts: [{ text: words }] };
  let n = 0;
  const send = async () => {
    const params = { message: { messageId: `m${n++}`, ...part }, configuration: { returnImmediately: true } };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params });
    const { status, text } = await exchange(client, { path, method: 'POST', headers, body });
    const [, id] = /"task":\{"id":"([\w-]+)"/.exec(text) ?? [];
    if (status !== 200 || !id) throw new Error(`a send answered ${status}: ${text}`);
    return id;
  };
  return { send, close: () => client.close() };
}

/** As many as are completed with so many open at once. Whoever sends and counts has its cores from what is measured, so it does little. */
async function flood(peer, pool, forSeconds) {
  const senders = Array.from({ length: 50 }, () => sender(peer));
  const under = new Set();
  let sent = 0;
  let completed = 0;
  let room = later();
  const cpuBefore = cpuMicros(peer.pid);
  const startedAt = performance.now();
  let sending = true;
  const counting = (async () => {
    while (sending || completed < sent) {
      const { rows } = await pool.query({ ...peer.ends, values: [[...under]] });
      for (const { id } of rows) under.delete(id);
      completed += rows.length;
      room.resolve();
      room = later();
      await sleep(20);
    }
    return performance.now();
  })();
  const loop = async ({ send }) => {
    while (performance.now() < startedAt + forSeconds * 1_000) {
      if (sent - completed >= open) await room.promise;
      else {
        sent++;
        under.add(await send());
      }
    }
  };
  await Promise.all(senders.map(loop));
  sending = false;
  const endedAt = await counting;
  await Promise.all(senders.map(({ close }) => close()));
  return { rate: sent / ((endedAt - startedAt) / 1_000), cpu: (cpuMicros(peer.pid) - cpuBefore) / sent };
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

function later() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}
