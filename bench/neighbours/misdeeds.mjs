// Misdeeds of one member of an org against resources that all members share. As a process, `misdeeds.mjs name url key
// peer id` repeats one misdeed until it is stopped. It prints "at it" when it has begun.
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { root } from '../lib/processes.mjs';

const [, file, name, url, key, peer, id] = process.argv;
const headers = {
  authorization: `Bearer ${key}`,
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'a2a-version': '1.0',
};

/** The misdeeds, by the kind of shared resource. */
export const misdeeds = {
  // The limit of a member allows twenty requests per second.
  requests: () => often(50, () => ask('GET', '/api/a2a/tasks?limit=100')),
  bodies: () =>
    often(50, () => rpc('/mcp', 'tools/call', { name: 'good__echo', arguments: { list: Array(50_000).fill({}) } })),
  streams: async () => {
    await publish({ kind: 'echo', delayMs: 600_000 });
    for (let n = 0; n < 100; n++) void unread(`/a2a/agents/${id}`, 'SendStreamingMessage', message());
  },
  sockets: () => {
    for (let n = 0; n < 500; n++)
      drip(
        n % 2 === 0 ? 'GET /readyz HTTP/1.1\r\nx: ' : `POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: 900000\r\n\r\n`,
      );
  },
  program: async () => {
    await make('/api/mcp/servers', {
      id,
      command: process.execPath,
      args: [join(root, 'bench/neighbours/program.mjs')],
    });
    waiting(`${id}__echo`);
  },
  'silent server': () => server('silent'),
  'dripping server': () => server('drip'),
  'resetting server': async () => {
    await register('reset');
    await often(50, () => rpc('/mcp', 'tools/call', { name: `${id}__echo`, arguments: {} }));
  },
  'huge answers': async () => {
    await register('huge');
    await often(500, () => rpc('/mcp', 'tools/call', { name: `${id}__echo`, arguments: {} }));
  },
  'silent agent': async () => {
    await make('/api/a2a/agents', { url: `${peer}/agent/${id}`, slug: id });
    for (let n = 0; n < 100; n++) void ask('POST', '/api/a2a/invoke', { agentCardId: id, skillId: 'wait' });
  },
  queue: async () => {
    await publish({ kind: 'echo', delayMs: 30_000 });
    for (let n = 0; n < 500; n++)
      void rpc(`/a2a/agents/${id}`, 'SendMessage', { ...message(), configuration: { returnImmediately: true } });
  },
  webhooks: async () => {
    await publish({ kind: 'echo' });
    const configuration = { returnImmediately: true, taskPushNotificationConfig: { url: `${peer}/hook` } };
    for (let n = 0; n < 200; n++) void rpc(`/a2a/agents/${id}`, 'SendMessage', { ...message(), configuration });
  },
  'policy set': async () => {
    let n = 0;
    const condition = (index) => `context.input.hasTag("x") && context.input.getTag("x") like "*a*b*c${index}"`;
    const rule = (_, index) =>
      `forbid(principal == User::"x${++n}", action == Action::"mcp_call", resource) when { ${condition(index)} };`;
    const text = () => Array.from({ length: 20 }, rule).join('\n');
    await make('/api/policies', { name: id, text: text() });
    await often(250, () => ask('PUT', `/api/policies/${id}`, { text: text() }));
  },
  sweep: async () => {
    const agent = await make('/api/a2a/agents', { url: `${peer}/agent/${id}`, slug: id });
    await publish({ kind: 'remote', agentId: agent.id });
    for (let n = 0; n < 200; n++)
      void rpc(`/a2a/agents/${id}`, 'SendMessage', { ...message(), configuration: { returnImmediately: true } });
  },
};

async function ask(method, path, body) {
  return fetch(`${url}${path}`, { method, headers, body: body && JSON.stringify(body) }).catch(() => undefined);
}

/** Creates an object. Throws when the gateway refuses it, because the misdeed would then have no effect. */
async function make(path, body) {
  const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
  return response.json();
}

async function rpc(path, method, params) {
  const answer = await ask('POST', path, { jsonrpc: '2.0', id: 1, method, params });
  return answer?.text().catch(() => undefined);
}

function publish(executor) {
  return make('/api/a2a/published', { name: id, description: 'Bad.', executor, a2a_enabled: true });
}

function register(path) {
  return make('/api/mcp/servers', { id, url: `${peer}/${path}` });
}

function message() {
  return { message: { messageId: `b${Math.random()}`, role: 'ROLE_USER', parts: [{ text: 'x'.repeat(2_000) }] } };
}

async function server(path) {
  await register(path);
  waiting(`${id}__echo`);
}

/** Starts calls that never get an answer. */
function waiting(tool) {
  for (let n = 0; n < 100; n++) void rpc('/mcp', 'tools/call', { name: tool, arguments: {} });
}

/** Repeats an act every `everyMs` milliseconds, without waiting for the answer. */
async function often(everyMs, act) {
  for (;;) {
    void Promise.resolve(act()).then((answer) => answer?.body?.cancel?.());
    await wait(everyMs);
  }
}

/** Opens a stream and reads nothing from it. */
async function unread(path, method, params) {
  const { body } = await ask('POST', path, { jsonrpc: '2.0', id: 1, method, params });
  openBodies.push(body);
}
const openBodies = [];

/** Sends a request that never ends, one byte per second. */
function drip(head) {
  const socket = connect({ port: new URL(url).port, host: '127.0.0.1' }, () => socket.write(head));
  socket.on('error', () => undefined);
  setInterval(() => socket.write('x'), 1_000);
}

if (import.meta.url === pathToFileURL(file).href) {
  process.on('SIGTERM', () => process.exit(0));
  void misdeeds[name]();
  await wait(1_000);
  console.log('at it');
  await wait(2 ** 30);
}
