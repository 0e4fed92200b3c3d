// Measures many readers of one silent task: the memory of each, and the time until one event reaches all of them.
import { connect } from 'node:net';
import { readFileSync } from 'node:fs';
import { json, startRialto, until } from '../lib/processes.mjs';
import { printHeader, printTable } from '../lib/report.mjs';

const count = Number(process.env.STREAMS ?? 2_000);
const perPrincipal = 50;
const perOrg = 200;

await printHeader('bench/a2a/idle-streams', {
  rounds: 1,
  of: `${count} streams`,
  databaseUrl: process.env.DATABASE_URL,
});
const rialto = await startRialto();
const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${rialto.pid}/status`, 'utf8'))[1]);
const sockets = [];

try {
  const orgs = Math.ceil(count / perOrg);
  const before = [];
  const running = [];
  let reached = 0;
  let lastAt = 0;
  for (let org = 0; org < orgs; org++) running.push(await prepare(`org${org}`));
  await settle();
  before.push(rss());
  for (const { url, tokens, id } of running) {
    for (const token of tokens) {
      await Promise.all(
        Array.from({ length: perPrincipal }, () =>
          open(url, token, id, () => {
            reached++;
            lastAt = performance.now();
          }),
        ),
      );
    }
  }
  await settle();
  const perStream = ((rss() - before[0]) / sockets.length).toFixed(1);
  reached = 0;
  const at = performance.now();
  await Promise.all(
    running.map(({ url, tokens, id }) =>
      json(url, { token: tokens[0], body: { jsonrpc: '2.0', id: 1, method: 'CancelTask', params: { id } } }),
    ),
  );
  await until(`${sockets.length} streams reached`, () => reached >= sockets.length);
  printTable(
    ['idle streams', 'KiB each (resident)', 'one event reaches all in ms'],
    [[String(sockets.length), perStream, (lastAt - at).toFixed(0)]],
  );
} finally {
  for (const socket of sockets) socket.destroy();
  await rialto.stop();
}

/** Creates an org with a sleeping task that every member may follow, because each admin sees the tasks of the org. */
async function prepare(slug) {
  const call = (path, body, token = rialto.token) => json(`${rialto.url}${path}`, { token, body });
  await call('/api/orgs', { slug });
  const tokens = [];
  for (let index = 0; index < perOrg / perPrincipal; index++) tokens.push(await tokenOf(slug, `reader${index}`));
  const published = {
    name: 'asleep',
    description: 'x',
    executor: { kind: 'echo', delayMs: 600_000 },
    a2a_enabled: true,
  };
  await call('/api/a2a/published', published, tokens[0]);
  const url = `${rialto.url}/a2a/agents/asleep`;
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] };
  const params = { message, configuration: { returnImmediately: true } };
  const { result } = await call(
    '/a2a/agents/asleep',
    { jsonrpc: '2.0', id: 1, method: 'SendMessage', params },
    tokens[0],
  );
  return { url, tokens, id: result.task.id };
}

async function tokenOf(org, sub) {
  await json(`${rialto.url}/api/orgs/${org}/members`, { token: rialto.token, body: { sub, role: 'admin' } });
  const { SignJWT } = await import('jose');
  return new SignJWT({ org_domain: org, sub, iss: 'rialto', aud: 'rialto' })
    .setProtectedHeader({ alg: 'HS256' })
    .setIssuedAt()
    .setExpirationTime('15m')
    .sign(Buffer.from(rialto.secret));
}

function open(url, token, id, onEvent) {
  const { hostname, port, pathname } = new URL(url);
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id } });
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    sockets.push(socket);
    let seen = 0;
    socket.setEncoding('utf8');
    socket.on('error', reject);
    socket.on('data', (text) => {
      if (seen === 0 && !text.startsWith('HTTP/1.1 200')) return reject(new Error(text.slice(0, 300)));
      const events = text.split('data: ').length - 1;
      for (let event = 0; event < events; event++) if (seen++ > 0) onEvent();
      if (seen > 0) resolve();
    });
    const head = [
      `POST ${pathname} HTTP/1.1`,
      `Host: ${hostname}`,
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(body)}`,
    ].join('\r\n');
    socket.write(`${head}\r\n\r\n${body}`);
  });
}

function settle() {
  return new Promise((resolve) => setTimeout(resolve, 3_000));
}
