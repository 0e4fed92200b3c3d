// What a published agent costs against the official SDK's server with the same agent: in its memory, and in its PostgreSQL store.
// One run, in turn, same load; every task and event of the gateway is committed with synchronous_commit=on.
import { execFileSync } from 'node:child_process';
import { load, show, spread } from '../lib/load.mjs';
import { cpuMicros, json, root, start, startRialto } from '../lib/processes.mjs';
import { startPostgres } from '../lib/services.mjs';

const rounds = Number(process.env.ROUNDS ?? 5);
const seconds = Number(process.env.SECONDS_PER_SHOT ?? 4);
const only = process.env.ONLY?.split(',');
const ready = /ready (\S+)/;
const words = 'x'.repeat(500);

const postgres = await startPostgres();
const sdkDatabase = await postgres.database('sdk');
execFileSync('npx', ['a2a-db', 'upgrade', '--url', sdkDatabase], { cwd: root, stdio: 'ignore' });
const rialto = await startRialto({ DATABASE_URL: await postgres.database('gateway') });
const memory = await start('bench/a2a/sdk-server.mjs', { ready });
const stored = await start('bench/a2a/sdk-server.mjs', { ready, args: [sdkDatabase] });

try {
  const published = {
    name: 'echo',
    description: 'Says what it was told.',
    executor: { kind: 'echo' },
    a2a_enabled: true,
  };
  await json(`${rialto.url}/api/a2a/published`, { token: rialto.token, body: published });
  const servers = {
    rialto: {
      url: `${rialto.url}/a2a/agents/echo`,
      card: `${rialto.url}/a2a/agents/echo/.well-known/agent-card.json`,
      pid: rialto.pid,
      headers: { authorization: `Bearer ${rialto.token}` },
    },
    'sdk memory': server(memory),
    'sdk postgres': server(stored),
  };
  let n = 0;
  const request = (method, params) => JSON.stringify({ jsonrpc: '2.0', id: ++n, method, params });
  const message = () => ({ messageId: `m${n}`, role: 'ROLE_USER', parts: [{ text: words }] });
  for (const server of Object.values(servers)) {
    const { result } = await post(server, request('SendMessage', { message: message() }));
    server.taskId = result.task.id;
  }
  const completed = (text) => text.includes('TASK_STATE_COMPLETED');
  const paths = {
    send: { body: () => request('SendMessage', { message: message() }), expect: completed },
    get: { body: ({ taskId }) => request('GetTask', { id: taskId }), expect: completed },
    card: { method: 'GET', at: 'card', expect: (text) => text.includes('echo') },
    stream: { body: () => request('SendStreamingMessage', { message: message() }), expect: completed },
    async: {
      body: () => request('SendMessage', { message: message(), configuration: { returnImmediately: true } }),
      expect: (text) => text.includes('"result"'),
    },
  };
  for (const [path, what] of Object.entries(paths)) {
    if (only && !only.includes(path)) continue;
    const shots = { 50: {}, 1: {} };
    for (const server of Object.values(servers)) await shoot(server, what, 50, 2);
    for (let round = 0; round < rounds; round++) {
      for (const connections of path === 'stream' || path === 'send' ? [50, 1] : [50]) {
        for (const [name, server] of Object.entries(servers))
          (shots[connections][name] ??= []).push(await shoot(server, what, connections, seconds));
      }
    }
    report(path, shots);
  }
} finally {
  await Promise.all([rialto.stop(), memory.stop(), stored.stop()]);
  await postgres.stop();
}

function server({ match, pid }) {
  const headers = { 'a2a-version': '1.0' };
  return { url: `${match[1]}/`, card: `${match[1]}/.well-known/agent-card.json`, pid, headers };
}

async function post({ url, headers }, body) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  return response.json();
}

async function shoot(server, { at = 'url', body, ...what }, connections, duration) {
  const before = cpuMicros(server.pid);
  const shot = await load(server[at], {
    ...what,
    headers: at === 'card' ? {} : server.headers,
    body: body && (() => body(server)),
    connections,
    seconds: duration,
  });
  if (shot.wrong > 0) throw new Error(`${server.url}: ${shot.wrong} wrong answers`);
  return { ...shot, cpu: (cpuMicros(server.pid) - before) / (shot.rps * duration) };
}

function report(path, shots) {
  const [ours, ...peers] = Object.keys(shots[50]);
  const ratio = (peer) => spread(shots[50][ours].map((shot, index) => shot.rps / shots[50][peer][index].rps));
  console.log(
    `\n${path}, 50 connections: ${rounds} rounds of ${seconds} s, Node ${process.version}; median (least to most)`,
  );
  for (const peer of peers) console.log(`  throughput to ${peer.padEnd(13)} ${show(ratio(peer))}`);
  for (const name of [ours, ...peers]) {
    const of = (connections, field) => show(spread(shots[connections][name].map((shot) => shot[field])), 2);
    const alone = shots[1][name] ? `   1 connection: p50 ms ${of(1, 'p50')}, first bytes ${of(1, 'first50')}` : '';
    console.log(
      `  ${name.padEnd(13)} req/s ${show(spread(shots[50][name].map((shot) => shot.rps)), 0).padEnd(24)} p50 ms ${of(50, 'p50').padEnd(22)} p99 ${of(50, 'p99').padEnd(24)} CPU us ${show(spread(shots[50][name].map((shot) => shot.cpu)), 0)}${alone}`,
    );
  }
}
