// What a tools/call costs through the gateway to an MCP server that is a program, against mcp-proxy and supergateway in front of the
// same program and against the program itself, all in one run, in turn. Then the list of 1,000 tools. Figures are ratios with their spread.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { load, show, spread } from '../lib/load.mjs';
import { cpuMicros, json, root, startRialto } from '../lib/processes.mjs';

const rounds = Number(process.env.ROUNDS ?? 5);
const seconds = Number(process.env.SECONDS_PER_SHOT ?? 4);
const program = join(root, 'bench', 'mcp', 'upstream.mjs');
const cache = join(root, '.cache', 'bench-mcp');
const packages = { 'mcp-proxy': '6.7.19', supergateway: '4.0.0' };

install();
const rialto = await startRialto({ RIALTO_STDIO_COMMANDS: 'any' });
const proxies = [];
const pipe = openPipe();
try {
  const register = (id, tools) =>
    json(`${rialto.url}/api/mcp/servers`, {
      token: rialto.token,
      body: { id, command: process.execPath, args: [program, String(tools)] },
    });
  await register('bench', 1);
  const authorization = `Bearer ${rialto.token}`;
  const targets = {
    rialto: await target(`${rialto.url}/mcp/servers/bench`, rialto.pid, { authorization }),
    'mcp-proxy': await proxied('mcp-proxy/dist/bin/mcp-proxy.mjs', (port) => [
      ...['--port', port, '--host', '127.0.0.1', '--server', 'stream', '--'],
      ...[process.execPath, program],
    ]),
    supergateway: await proxied('supergateway/dist/index.js', (port) => [
      ...['--stdio', `${process.execPath} ${program}`, '--outputTransport', 'streamableHttp', '--stateful'],
      ...['--port', port, '--logLevel', 'none'],
    ]),
  };
  for (const one of Object.values(targets)) await load(one.url, { ...one, seconds: 2 });

  const shots = { 50: {}, 1: {} };
  for (let round = 0; round < rounds; round++)
    for (const connections of [50, 1]) {
      (shots[connections].direct ??= []).push(await pipe.load(connections, seconds));
      for (const [name, one] of Object.entries(targets)) {
        const before = cpuMicros(one.pid);
        const result = await load(one.url, { ...one, connections, seconds });
        const cpu = (cpuMicros(one.pid) - before) / (result.rps * seconds);
        (shots[connections][name] ??= []).push({ ...result, cpu });
        if (result.wrong > 0) throw new Error(`${name}: ${result.wrong} wrong answers`);
      }
    }
  report(shots);

  await register('many', 1_000);
  const many = await target(`${rialto.url}/mcp/servers/many`, rialto.pid, { authorization }, 'tools/list');
  await load(many.url, { ...many, connections: 1, seconds: 1 });
  const list = await load(many.url, { ...many, connections: 1, seconds });
  if (list.wrong > 0) throw new Error(`${list.wrong} wrong lists`);
  console.log(`\nlist of 1,000 tools, 1 connection: p50 ms ${list.p50.toFixed(2)}   p99 ms ${list.p99.toFixed(2)}`);
} finally {
  pipe.close();
  for (const child of proxies) child.kill('SIGTERM');
  await rialto.stop();
}

/** What is compared with is no dependency of ours. */
function install() {
  if (Object.keys(packages).every((name) => existsSync(join(cache, 'node_modules', name)))) return;
  mkdirSync(cache, { recursive: true });
  const wanted = Object.entries(packages).map(([name, version]) => `${name}@${version}`);
  execFileSync('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', cache, ...wanted], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

async function proxied(script, argsAt) {
  const port = await freePort();
  const child = spawn(process.execPath, [join(cache, 'node_modules', script), ...argsAt(String(port))], {
    stdio: 'ignore',
  });
  proxies.push(child);
  const url = `http://127.0.0.1:${port}/mcp`;
  for (let tries = 0; tries < 100; tries++) {
    if (await fetch(url).then(Boolean, () => false)) return target(url, child.pid);
    await wait(100);
  }
  throw new Error(`${script} does not listen`);
}

/** A session of the 2025 era, and calls in it. */
async function target(url, pid, headers = {}, method = 'tools/call') {
  const common = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers };
  const post = (body, more) =>
    fetch(url, { method: 'POST', headers: { ...common, ...more }, body: JSON.stringify({ jsonrpc: '2.0', ...body }) });
  const protocolVersion = '2025-06-18';
  const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
  const opened = await post({ id: 'open', method: 'initialize', params });
  if (!opened.ok) throw new Error(`${url} answered ${opened.status}: ${await opened.text()}`);
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id'), 'mcp-protocol-version': protocolVersion };
  await opened.text();
  await (await post({ method: 'notifications/initialized' }, session)).text();
  let n = 0;
  const asked = method === 'tools/list' ? () => ({}) : (id) => ({ name: 'echo', arguments: { n: id } });
  const expected = method === 'tools/list' ? 'tool-999' : 'xxx';
  return {
    url,
    pid,
    headers: { ...headers, ...session },
    body: () => JSON.stringify({ jsonrpc: '2.0', id: ++n, method, params: asked(n) }),
    expect: (text) => text.includes(expected),
  };
}

/** The program itself, spoken to as a client does that starts it. */
function openPipe() {
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting = new Map();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { id } = JSON.parse(line);
    waiting.get(id)?.();
    waiting.delete(id);
  });
  let n = 0;
  const call = () =>
    new Promise((done) => {
      const id = ++n;
      waiting.set(id, done);
      const params = { name: 'echo', arguments: { n: id } };
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })}\n`);
    });
  return {
    close: () => child.kill('SIGTERM'),
    load: async (connections, forSeconds) => {
      const latencies = [];
      const began = performance.now();
      const worker = async () => {
        while (performance.now() - began < forSeconds * 1_000) {
          const at = performance.now();
          await call();
          latencies.push(performance.now() - at);
        }
      };
      await Promise.all(Array.from({ length: connections }, worker));
      latencies.sort((a, b) => a - b);
      const at = (share) => latencies[Math.floor(latencies.length * share)];
      return { rps: latencies.length / ((performance.now() - began) / 1_000), p50: at(0.5), p99: at(0.99) };
    },
  };
}

async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

function report(shots) {
  const ratio = (connections, peer) =>
    spread(shots[connections].rialto.map((shot, index) => shot.rps / shots[connections][peer][index].rps));
  const added = (name, field) =>
    spread(shots[1][name].map((shot, index) => shot[field] - shots[1].direct[index][field]));
  console.log(`bench/mcp: ${rounds} rounds of ${seconds} s, Node ${process.version}; median (least to most)\n`);
  console.log('50 connections: tools/call to a program; the gateway with token, decision and durable audit');
  for (const peer of ['mcp-proxy', 'supergateway', 'direct'])
    console.log(`  throughput to ${peer.padEnd(12)} ${show(ratio(50, peer))}`);
  for (const name of Object.keys(shots[50])) {
    const of = (field) => show(spread(shots[50][name].map((shot) => shot[field] ?? NaN)), 1);
    console.log(
      `  ${name.padEnd(12)} req/s ${of('rps').padEnd(28)} p50 ms ${of('p50').padEnd(20)} p99 ms ${of('p99').padEnd(22)} CPU us ${of('cpu')}`,
    );
  }
  console.log('\n1 connection: what is added to a call of the program itself');
  for (const name of ['rialto', 'mcp-proxy', 'supergateway'])
    console.log(`  ${name.padEnd(12)} p50 ms ${show(added(name, 'p50'))}   p99 ms ${show(added(name, 'p99'))}`);
}
