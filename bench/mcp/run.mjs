// Compares the cost of a tools/call through the gateway to an MCP server program with mcp-proxy and supergateway in
// front of the same program, and with the program itself. They run in turn in one run. Then it measures a list of 1,000
// tools. The figures are ratios with their spread. PROXIES=none skips the two proxies and their installation.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { load, warmUp } from '../lib/load.mjs';
import { cpuMicros, json, root, startBaseline, startRialto } from '../lib/processes.mjs';
import { of, printHeader, printServers, printTable, settings, show, spread } from '../lib/report.mjs';

const { rounds, seconds, warmUpSeconds } = settings();
const withProxies = process.env.PROXIES !== 'none';
const program = join(root, 'bench', 'mcp', 'upstream.mjs');
const cache = join(root, '.cache', 'bench-mcp');
const packages = { 'mcp-proxy': '6.7.19', supergateway: '4.0.0' };

await printHeader('bench/mcp', { rounds, of: `${seconds} s`, databaseUrl: process.env.DATABASE_URL });
if (withProxies) install();
const rialto = await startRialto({ RIALTO_STDIO_COMMANDS: 'any' });
const baseline = await startBaseline({ RIALTO_STDIO_COMMANDS: 'any' });
const proxies = [];
const pipe = openPipe();
try {
  const registered = async ({ url, token, pid }, id, tools, method) => {
    const body = { id, command: process.execPath, args: [program, String(tools)] };
    await json(`${url}/api/mcp/servers`, { token, body });
    return target(`${url}/mcp/servers/${id}`, pid, { authorization: `Bearer ${token}` }, method);
  };
  const targets = {
    Rialto: await registered(rialto, 'bench', 1),
    ...(withProxies && {
      'mcp-proxy': await proxied('mcp-proxy/dist/bin/mcp-proxy.mjs', (port) => [
        ...['--port', port, '--host', '127.0.0.1', '--server', 'stream', '--'],
        ...[process.execPath, program],
      ]),
      supergateway: await proxied('supergateway/dist/index.js', (port) => [
        ...['--stdio', `${process.execPath} ${program}`, '--outputTransport', 'streamableHttp', '--stateful'],
        ...['--port', port, '--logLevel', 'none'],
      ]),
    }),
    ...(baseline && { baseline: await registered(baseline, 'bench', 1) }),
  };
  const shooters = Object.entries(targets).map(([name, one]) => [name, (shot) => load(one, shot)]);
  shooters.push(['direct', pipe.load]);
  for (const [name, shoot] of shooters) await warmUp(name, () => shoot({ connections: 50, seconds: warmUpSeconds }));

  const shots = { 50: {}, 1: {} };
  for (let round = 0; round < rounds; round++)
    for (const connections of [50, 1])
      for (const [name, shoot] of shooters)
        (shots[connections][name] ??= []).push(await shoot({ connections, seconds }));
  report(shots);

  const many = await registered(rialto, 'many', 1_000, 'tools/list');
  const listOnce = (forSeconds) => load(many, { connections: 1, seconds: forSeconds });
  await warmUp('the list', () => listOnce(warmUpSeconds));
  const lists = [];
  for (let round = 0; round < rounds; round++) lists.push(await listOnce(seconds));
  console.log('\nlist of 1,000 tools, 1 connection');
  printTable(['p50 ms', 'p99 ms'], [[of(lists, 'p50', 2), of(lists, 'p99', 2)]]);
} finally {
  pipe.close();
  for (const child of proxies) child.kill('SIGTERM');
  await Promise.all([rialto.stop(), baseline?.stop()]);
}

/** Installs the two proxies, which are not dependencies of Rialto. */
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

/** Opens a session of the 2025 era for calls. */
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

/** Starts the program itself and calls it, as a client over standard input and output does. */
function openPipe() {
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting = new Map();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { id, result } = JSON.parse(line);
    if (!result?.content) throw new Error(`the program answered ${line}`);
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
    load: async ({ connections, seconds: forSeconds }) => {
      const cpuBefore = cpuMicros(child.pid);
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
      const cpu = (cpuMicros(child.pid) - cpuBefore) / latencies.length;
      return { rps: latencies.length / ((performance.now() - began) / 1_000), p50: at(0.5), p99: at(0.99), cpu };
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
  console.log('\n50 connections: tools/call to a program; the gateway with token, decision and durable audit');
  printServers(shots[50]);
  const added = (name, field) =>
    show(spread(shots[1][name].map((shot, index) => shot[field] - shots[1].direct[index][field])));
  console.log('\n1 connection: latency that is added to a call of the program itself');
  printTable(
    ['server', 'p50 ms', 'p99 ms'],
    Object.keys(shots[1])
      .filter((name) => name !== 'direct')
      .map((name) => [name, added(name, 'p50'), added(name, 'p99')]),
  );
}
