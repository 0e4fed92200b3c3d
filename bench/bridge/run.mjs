// What a tools/call costs through the gateway, against the same client calling the same agent directly and against the official
// SDK's stateless server answering a no-op. All in one run, in turn; figures are ratios with their spread.
import { load, show, spread } from '../lib/load.mjs';
import { cpuMicros, json, start, startRialto } from '../lib/processes.mjs';

const rounds = Number(process.env.ROUNDS ?? 5);
const seconds = Number(process.env.SECONDS_PER_SHOT ?? 4);
const ready = /ready (\S+)/;

const agent = await start('bench/bridge/agent.mjs', { ready });
const sdk2 = await start('bench/bridge/sdk-v2.mjs', { ready });
const sdk1 = await start('bench/bridge/sdk-v1.mjs', { ready });
const rialto = await startRialto();
const agentUrl = agent.match[1];

try {
  await json(`${rialto.url}/api/a2a/agents`, { token: rialto.token, body: { url: agentUrl } });
  const call = (name) =>
    JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } });
  const direct = JSON.stringify({
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
  const targets = {
    rialto: {
      url: `${rialto.url}/mcp`,
      pid: rialto.pid,
      headers: { authorization: `Bearer ${rialto.token}` },
      body: () =>
        JSON.stringify({
          jsonrpc: '2.0',
          id: ++n,
          method: 'tools/call',
          params: { name: 'a2a_bench_echo', arguments: { n } },
        }),
      expect: (text) => text.includes('structuredContent'),
    },
    direct: { url: agentUrl, pid: agent.pid, body: direct, expect: (text) => text.includes('artifacts') },
    'sdk 2.x': { url: sdk2.match[1], pid: sdk2.pid, body: call('noop'), expect: (text) => text.includes('xxx') },
    'sdk 1.x': { url: sdk1.match[1], pid: sdk1.pid, body: call('noop'), expect: (text) => text.includes('xxx') },
  };
  for (const target of Object.values(targets)) await load(target.url, { ...target, seconds: 2 });

  const shots = { 50: {}, 1: {} };
  for (let round = 0; round < rounds; round++) {
    for (const connections of [50, 1]) {
      for (const [name, target] of Object.entries(targets)) {
        const before = cpuMicros(target.pid);
        const result = await load(target.url, { ...target, connections, seconds });
        const cpu = (cpuMicros(target.pid) - before) / (result.rps * seconds);
        (shots[connections][name] ??= []).push({ ...result, cpu });
        if (result.wrong > 0) throw new Error(`${name}: ${result.wrong} wrong answers`);
      }
    }
  }
  report(shots);
} finally {
  await Promise.all([rialto.stop(), agent.stop(), sdk1.stop(), sdk2.stop()]);
}

function report(shots) {
  const ratio = (connections, field, a, b) =>
    spread(shots[connections][a].map((shot, index) => shot[field] / shots[connections][b][index][field]));
  const added = (field) => spread(shots[1].rialto.map((shot, index) => shot[field] - shots[1].direct[index][field]));
  console.log(`bench/bridge: ${rounds} rounds of ${seconds} s, Node ${process.version}; median (least to most)\n`);
  console.log('50 connections: tools/call with token, decision, durable audit and load rows, and a real hop');
  for (const peer of ['sdk 2.x', 'sdk 1.x', 'direct'])
    console.log(`  throughput to ${peer.padEnd(8)} ${show(ratio(50, 'rps', 'rialto', peer))}`);
  for (const name of Object.keys(shots[50])) {
    const of = (field) => show(spread(shots[50][name].map((shot) => shot[field])), 1);
    console.log(
      `  ${name.padEnd(8)} req/s ${of('rps').padEnd(28)} p50 ms ${of('p50').padEnd(20)} p99 ms ${of('p99').padEnd(22)} CPU us ${of('cpu')}`,
    );
  }
  console.log('\n1 connection: latency that the gateway adds to the direct call');
  console.log(`  p50 ms ${show(added('p50'))}   p99 ms ${show(added('p99'))}`);
}
