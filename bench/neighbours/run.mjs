// Measures how much slower the other members of an org become while one member misbehaves, for each kind of shared
// resource. The other members send, stream, wait for a queued task, call a tool, list tools and list agents at an even
// pace, first alone and then during each misdeed, in turn in every round. The request limits have their default values.
// ONLY=program,queue selects misdeeds.
import { load } from '../lib/load.mjs';
import { json, start, startRialto } from '../lib/processes.mjs';
import { printHeader, printTable, settings, show, spread } from '../lib/report.mjs';
import { misdeeds } from './misdeeds.mjs';

const { rounds, seconds } = settings();
/**
 * Milliseconds between the requests of a member. With this pause, six members and the misbehaving one stay below the
 * requests per minute of their org.
 */
const pauseMs = 100;

const only = process.env.ONLY?.split(',');
const names = Object.keys(misdeeds).filter((name) => only?.includes(name) ?? true);
await printHeader('bench/neighbours', { rounds, of: `${seconds} s`, databaseUrl: process.env.DATABASE_URL });
const rialto = await startRialto({
  RIALTO_STDIO_COMMANDS: 'any',
  RIALTO_RATE_LIMIT_PRINCIPAL: '1200',
  RIALTO_RATE_LIMIT_ORG: '6000',
});
const peer = await start('bench/neighbours/peer.mjs', { ready: /ready (\S+)/ });
const admin = (path, body) => json(`${rialto.url}${path}`, { token: rialto.token, body });
try {
  const members = await innocents();
  await shoot(members);
  const ratios = {};
  const middles = {};
  for (let round = 0; round < rounds; round++)
    for (const name of names) {
      const alone = await shoot(members);
      const id = `bad${names.indexOf(name)}_${round}`;
      const args = [name, rialto.url, await keyOf(id, 'admin'), peer.match[1], id];
      const bad = await start('bench/neighbours/misdeeds.mjs', { args, ready: /at it/ });
      const beside = await shoot(members);
      await bad.stop();
      await remove(id);
      for (const path of Object.keys(members)) {
        ((ratios[name] ??= {})[path] ??= []).push(beside[path].p50 / alone[path].p50);
        (middles[path] ??= []).push(alone[path].p50);
      }
    }
  console.log('\np50 beside a misdeed, as a ratio to the shot before it');
  printTable(
    ['misdeed', ...Object.keys(members)],
    names.map((name) => [name, ...Object.keys(members).map((path) => show(spread(ratios[name][path])))]),
  );
  console.log('\nalone');
  printTable(
    ['', ...Object.keys(members)],
    [['p50 ms', ...Object.keys(members).map((path) => show(spread(middles[path]), 1))]],
  );
} finally {
  await Promise.all([rialto.stop(), peer.stop()]);
}

/** Returns the requests of each member, with a separate key for each. */
async function innocents() {
  await admin('/api/a2a/published', {
    name: 'echo',
    description: 'Echo.',
    executor: { kind: 'echo' },
    a2a_enabled: true,
  });
  await admin('/api/mcp/servers', { id: 'good', url: `${peer.match[1]}/good` });
  let n = 0;
  const rpc = (method, params) => () => JSON.stringify({ jsonrpc: '2.0', id: ++n, method, params });
  const greeting = { message: { messageId: 'hello', role: 'ROLE_USER', parts: [{ text: 'hello' }] } };
  const completed = (text) => text.includes('TASK_STATE_COMPLETED');
  const paths = {
    send: { url: '/a2a/agents/echo', body: rpc('SendMessage', greeting), expect: completed },
    stream: { url: '/a2a/agents/echo', body: rpc('SendStreamingMessage', greeting), expect: completed },
    queued: {
      url: '/a2a/agents/echo',
      body: rpc('SendMessage', { ...greeting, configuration: { returnImmediately: true } }),
      expect: completed,
      follow: (text) => {
        const { id, status } = JSON.parse(text).result.task ?? JSON.parse(text).result;
        return status.state === 'TASK_STATE_COMPLETED' ? undefined : rpc('GetTask', { id })();
      },
    },
    'tools/call': {
      url: '/mcp',
      body: rpc('tools/call', { name: 'good__echo', arguments: {} }),
      expect: (text) => text.includes('well'),
    },
    'tools/list': { url: '/mcp', body: rpc('tools/list', {}), expect: (text) => text.includes('good__echo') },
    agents: { url: '/api/a2a/published', method: 'GET', expect: (text) => text.includes('echo') },
  };
  const members = {};
  for (const [name, { url, ...path }] of Object.entries(paths)) {
    const authorization = `Bearer ${await keyOf(`good-${name.replace('/', '-')}`, 'member')}`;
    members[name] = {
      ...path,
      url: `${rialto.url}${url}`,
      pid: rialto.pid,
      headers: { authorization, 'a2a-version': '1.0' },
    };
  }
  return members;
}

async function shoot(members) {
  const shots = await Promise.all(
    Object.entries(members).map(async ([path, member]) => [
      path,
      await load(member, { connections: 1, seconds, pauseMs }),
    ]),
  );
  return Object.fromEntries(shots);
}

/** Removes everything that a misdeed created, so that the next one starts from the same org. */
async function remove(id) {
  for (const path of ['a2a/published', 'a2a/agents', 'mcp/servers', 'policies'])
    await fetch(`${rialto.url}/api/${path}/${id}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${rialto.token}` },
    });
}

async function keyOf(name, role) {
  return (await admin('/api/keys', { name, role })).key;
}
