// Compares the cost of a tools/call through the gateway with the same client that calls the same agent directly, and
// with the official SDK's stateless server that answers a no-op. They run in turn in one run; the figures are ratios
// with their spread.
import { load, warmUp } from '../lib/load.mjs';
import { json, start, startBaseline, startRialto } from '../lib/processes.mjs';
import { printHeader, printServers, printTable, settings, show, spread } from '../lib/report.mjs';

const { rounds, seconds, warmUpSeconds } = settings();
const ready = /ready (\S+)/;

await printHeader('bench/bridge', { rounds, of: `${seconds} s`, databaseUrl: process.env.DATABASE_URL });
const agent = await start('bench/bridge/agent.mjs', { ready });
const sdk2 = await start('bench/bridge/sdk-v2.mjs', { ready });
const sdk1 = await start('bench/bridge/sdk-v1.mjs', { ready });
const rialto = await startRialto();
const baseline = await startBaseline();
const agentUrl = agent.match[1];

try {
  const call = (name) => () =>
    JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } });
  const direct = () =>
    JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'message/send',
      params: {
        message: {
          kind: 'message',
          role: 'user',
          messageId: 'm1',
          parts: [{ kind: 'data', data: { n: 1 } }],
          skill: { skillId: 'echo' },
        },
      },
    });
  let n = 0;
  const bridged = () =>
    JSON.stringify({
      jsonrpc: '2.0',
      id: ++n,
      method: 'tools/call',
      params: { name: 'a2a_bench_echo', arguments: { n } },
    });
  const gateway = async ({ url, token, pid }) => {
    await json(`${url}/api/a2a/agents`, { token, body: { url: agentUrl } });
    const headers = { authorization: `Bearer ${token}` };
    return { url: `${url}/mcp`, pid, headers, body: bridged, expect: (text) => text.includes('structuredContent') };
  };
  const targets = {
    Rialto: await gateway(rialto),
    direct: { url: agentUrl, pid: agent.pid, body: direct, expect: (text) => text.includes('artifacts') },
    'SDK 2.x': { url: sdk2.match[1], pid: sdk2.pid, body: call('noop'), expect: (text) => text.includes('xxx') },
    'SDK 1.x': { url: sdk1.match[1], pid: sdk1.pid, body: call('noop'), expect: (text) => text.includes('xxx') },
    ...(baseline && { baseline: await gateway(baseline) }),
  };
  for (const [name, target] of Object.entries(targets))
    await warmUp(name, () => load(target, { connections: 50, seconds: warmUpSeconds }));

  const shots = { 50: {}, 1: {} };
  for (let round = 0; round < rounds; round++)
    for (const connections of [50, 1])
      for (const [name, target] of Object.entries(targets))
        (shots[connections][name] ??= []).push(await load(target, { connections, seconds }));
  report(shots);
} finally {
  await Promise.all([rialto.stop(), baseline?.stop(), agent.stop(), sdk1.stop(), sdk2.stop()]);
}

function report(shots) {
  console.log('\n50 connections: tools/call with token, decision, durable audit and load rows, and a real hop');
  printServers(shots[50]);
  const added = (field) =>
    show(spread(shots[1].Rialto.map((shot, index) => shot[field] - shots[1].direct[index][field])));
  console.log('\n1 connection: latency that the gateway adds to the direct call');
  printTable(['p50 ms', 'p99 ms'], [[added('p50'), added('p99')]]);
}
