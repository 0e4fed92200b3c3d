// Compares the cost of a published agent with the official SDK's server with the same agent, in memory and in its
// PostgreSQL store, and with the least that a durable server does (floor.mjs). They run in turn, with the same load.
// The gateway commits every task and event with synchronous_commit=on. The path `async` is an asynchronous send with
// the GetTask requests of its client until the task is completed; a client has one open task at a time.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { load, warmUp } from '../lib/load.mjs';
import { json, root, start, startBaseline, startRialto } from '../lib/processes.mjs';
import { drift, of, printHeader, printServers, printTable, settings, show, spread } from '../lib/report.mjs';
import { startPostgres } from '../lib/services.mjs';

const { rounds, seconds, warmUpSeconds } = settings();
const only = process.env.ONLY?.split(',');
const ready = /ready (\S+)/;
const words = 'x'.repeat(500);

await printHeader('bench/a2a/run', { rounds, of: `${seconds} s` });
const postgres = await startPostgres();
const sdkDatabase = await postgres.database('sdk');
const migrate = join(root, 'node_modules', '.bin', 'a2a-db');
execFileSync(process.execPath, [migrate, 'upgrade', '--url', sdkDatabase], { cwd: root, stdio: 'ignore' });
const rialto = await startRialto({ DATABASE_URL: await postgres.database('gateway') });
const baseline = await startBaseline({ DATABASE_URL: await postgres.database('baseline') });
const memory = await start('bench/a2a/sdk-server.mjs', { ready });
const stored = await start('bench/a2a/sdk-server.mjs', { ready, args: [sdkDatabase] });
const floor = await start('bench/a2a/floor.mjs', { ready, args: [await postgres.database('floor')] });

try {
  const published = {
    name: 'echo',
    description: 'Repeats the message.',
    executor: { kind: 'echo' },
    a2a_enabled: true,
  };
  const gateway = async ({ url, token, pid }) => {
    await json(`${url}/api/a2a/published`, { token, body: published });
    const agent = `${url}/a2a/agents/echo`;
    const headers = { authorization: `Bearer ${token}` };
    return { url: agent, card: `${agent}/.well-known/agent-card.json`, pid, headers };
  };
  const servers = {
    Rialto: await gateway(rialto),
    'SDK, memory': server(memory),
    'SDK, PostgreSQL': server(stored),
    floor: server(floor),
    ...(baseline && { baseline: await gateway(baseline) }),
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
      expect: completed,
      follow: (text) => {
        const { result } = JSON.parse(text);
        const task = result?.task ?? result;
        const isOpen = /SUBMITTED|WORKING/.test(task?.status.state);
        return isOpen ? request('GetTask', { id: task.id }) : undefined;
      },
    },
  };
  const summary = [];
  for (const [path, what] of Object.entries(paths)) {
    if (only && !only.includes(path)) continue;
    const shots = { 50: {}, 1: {} };
    const measured = Object.entries(servers).filter(([name]) => path !== 'async' || name !== 'floor');
    for (const [name, server] of measured)
      await warmUp(`${name}, ${path}`, () => shoot(server, what, { connections: 50, seconds: warmUpSeconds }));
    for (let round = 0; round < rounds; round++) {
      for (const [name, server] of measured)
        (shots[50][name] ??= []).push(await shoot(server, what, { connections: 50, seconds }));
      if (path === 'stream' || path === 'send')
        (shots[1].Rialto ??= []).push(await shoot(servers.Rialto, what, { connections: 1, seconds }));
    }
    console.log(`\n${path}, 50 connections`);
    printServers(shots[50]);
    summary.push([path, ...summarise(shots, Object.keys(servers).slice(1))]);
  }
  console.log('\nall paths');
  printTable(
    [
      ...[
        'path',
        ...Object.keys(servers)
          .slice(1)
          .map((name) => `to ${name}`),
        'floor to SDK, memory',
      ],
      ...['gateway req/s', 'p50 ms', 'p99 ms', 'CPU µs'],
      ...['last to first shot', '1 connection: p50 ms', 'first bytes ms'],
    ],
    summary,
  );
} finally {
  await Promise.all([rialto.stop(), baseline?.stop(), memory.stop(), stored.stop(), floor.stop()]);
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

function shoot(server, { at = 'url', body, ...what }, shot) {
  const headers = at === 'card' ? {} : server.headers;
  return load({ ...what, url: server[at], pid: server.pid, headers, body: body && (() => body(server)) }, shot);
}

function summarise({ 50: { Rialto: ours, ...theirs }, 1: { Rialto: alone } }, peers) {
  const ratio = (shots, to) => (shots && to ? show(spread(shots.map(({ rps }, index) => rps / to[index].rps))) : '');
  return [
    ...peers.map((peer) => ratio(ours, theirs[peer])),
    ratio(theirs.floor, theirs['SDK, memory']),
    ...[of(ours, 'rps', 0), of(ours, 'p50', 1), of(ours, 'p99', 1), of(ours, 'cpu', 0), drift(ours)],
    ...['p50', 'first50'].map((field) => (alone ? of(alone, field, 2) : '')),
  ];
}
