// Measures an asynchronous send from its request to its completed task, and compares it with a hand-written server and
// with plain loops of prepared statements and BullMQ. They run in turn in one run, on Redis and on PostgreSQL.
// BACKENDS=redis,postgres ROUNDS=5 SECONDS_PER_SHOT=4
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Client } from 'undici';
import { exchange, warmUp } from '../lib/load.mjs';
import { cpuMicros, json, start, startBare, startRialto, until } from '../lib/processes.mjs';
import { drift, of, printHeader, printTable, settings, show, spread } from '../lib/report.mjs';
import { startPostgres, startQueues } from '../lib/services.mjs';

const { rounds, seconds, warmUpSeconds } = settings();
const open = 200;
const offered = 200;
const words = 'x'.repeat(500);
const endsOfTasks = {
  name: 'ends',
  text: 'select task_id as id from a2a_task_events where task_id = any($1) and terminal',
};
const endsByHand = { name: 'by-hand', text: 'select id from bare_events where id = any($1) and seq = 2' };

const postgres = await startPostgres();
const { redis, backends } = await startQueues();
await printHeader('bench/queue', { rounds, of: `${seconds} s`, queues: backends });

try {
  for (const backend of backends) await measure(backend);
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
  const task = await startBare(database, queue, 'task');
  const insert = await startBare(database, queue, 'insert');
  try {
    const published = { name: 'echo', description: 'x', executor: { kind: 'echo' }, a2a_enabled: true };
    await json(`${rialto.url}/api/a2a/published`, { token: rialto.token, body: published });
    const floods = {
      Rialto: (forSeconds) => flood(rialto, pool, forSeconds),
      'a server written by hand': (forSeconds) => flood(byHand, pool, forSeconds),
      'a task and its end kept, no server': (forSeconds) => task.shoot({ seconds: forSeconds, open }),
      'one insert, no server': (forSeconds) => insert.shoot({ seconds: forSeconds, open }),
    };
    for (const [name, shoot] of Object.entries(floods))
      await warmUp(`${name}, queue on ${backend}`, () => shoot(warmUpSeconds));
    const shots = {};
    const drips = { Rialto: [], 'one insert, no server': [] };
    for (let round = 0; round < rounds; round++) {
      for (const [name, shoot] of Object.entries(floods)) (shots[name] ??= []).push(await shoot(seconds));
      drips.Rialto.push(await drip(rialto, pool, seconds));
      drips['one insert, no server'].push(await insert.shoot({ seconds, offered }));
    }
    const { rows } = await pool.query(`select count(*)::int as count from a2a_tasks where status_state <> 'completed'`);
    if (rows[0].count > 0) throw new Error(`${rows[0].count} tasks did not end as completed`);
    report(backend, shots, drips);
  } finally {
    await pool.end();
    await Promise.all([rialto, byHand, task, insert].map(({ stop }) => stop()));
  }
}

function report(backend, shots, drips) {
  const ratioTo = (theirs) => show(spread(shots.Rialto.map((shot, index) => shot.rps / theirs[index].rps)));
  console.log(`\n${open} open`);
  printTable(
    ['queue', 'server', 'gateway to it', 'completed a second', 'CPU µs each', 'last to first shot'],
    Object.entries(shots).map(([name, list]) => [
      ...[backend, name, name === 'Rialto' ? '' : ratioTo(list)],
      ...[of(list, 'rps', 0), of(list, 'cpu', 0), drift(list)],
    ]),
  );
  console.log(`\n${offered} a second`);
  printTable(
    ['queue', 'server', 'p50 ms', 'p99 ms'],
    Object.entries(drips).map(([name, list]) => [backend, name, of(list, 'p50', 1), of(list, 'p99', 1)]),
  );
}

async function startByHand(database, queue) {
  const server = await start('bench/queue/served.mjs', { args: [database, queue], ready: /listening (\d+)/ });
  return { ...server, url: `http://127.0.0.1:${server.match[1]}`, path: '/', ends: endsByHand };
}

/** Sends asynchronously over one connection. Each send resolves with the id of its task. */
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

/**
 * Returns the number of completed tasks per second with a fixed number of open tasks. The client does little work,
 * because it shares its cores with the measured server.
 */
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
  return { rps: sent / ((endedAt - startedAt) / 1_000), cpu: (cpuMicros(peer.pid) - cpuBefore) / sent };
}

/** Measures the times from request to completed task at a fixed rate. All clocks are of one machine. */
async function drip(rialto, pool, forSeconds) {
  const senders = Array.from({ length: 50 }, () => sender(rialto));
  const sent = [];
  const endAt = performance.now() + forSeconds * 1_000;
  while (performance.now() < endAt) {
    const at = Date.now();
    sent.push(senders[sent.length % senders.length].send().then((id) => ({ id, at })));
    await sleep(1_000 / offered);
  }
  const all = await Promise.all(sent);
  await Promise.all(senders.map(({ close }) => close()));
  const ids = all.map(({ id }) => id);
  const done = new Map();
  await until(`${ids.length} tasks completed`, async () => {
    const { rows } = await pool.query(
      `select id, status_timestamp as at from a2a_tasks where id = any($1) and status_state = 'completed'`,
      [ids],
    );
    for (const { id, at } of rows) done.set(id, at.getTime());
    return done.size === ids.length;
  });
  const times = all.map(({ id, at }) => done.get(id) - at).sort((a, b) => a - b);
  const at = (share) => times[Math.floor((times.length - 1) * share)];
  return { p50: at(0.5), p99: at(0.99) };
}

function later() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}
