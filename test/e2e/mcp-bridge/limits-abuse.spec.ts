import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { eraOf } from '../../../src/mcp-bridge/door/era.js';
import { BatchGate } from '../../../src/mcp-bridge/door/mcp-batch.js';
import { readMcpMessage } from '../../../src/mcp-bridge/door/mcp-dispatch.js';
import type { ShareLimits } from '../../../src/platform/http/shares/shares.js';
import { UnreadAnswers, watchReader } from '../../../src/mcp-bridge/door/unread-answers.js';
import { modernRequest } from '../../support/clients/mcp-clients.js';
import { openEvents, type EventReader } from '../../support/clients/mcp-events.js';
import { signToken, startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { data } from '../../support/stubs/stub-behaviours.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

const megabyte = 1_048_576;
const full = 32 * megabyte;
const list = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/list' });

describe('MCP: lists and batches that would exhaust the memory', () => {
  let gateway: TestGateway;
  const agents: StubAgent[] = [];
  const expected: string[] = [];

  beforeAll(async () => {
    gateway = await startTestGateway();
    for (const name of ['Mem A', 'Mem B']) {
      const skills = Array.from({ length: 440 }, (_, at) => ({ id: `s${at}`, description: 'x'.repeat(2_000) }));
      const agent = await startStubAgent({ name, skills });
      agents.push(agent);
      expect((await gateway.call('POST', '/api/a2a/agents', { url: agent.url })).status).toBe(201);
      const slug = name.toLowerCase().replace(' ', '_');
      for (const { id } of skills) expected.push(`${slug}.${id}`, `a2a_${slug}_${id}`);
    }
  });
  afterAll(async () => {
    await gateway.close();
    await Promise.all(agents.map((agent) => agent.close()));
  });

  const hot = async (params: Record<string, unknown>, query: string) => {
    const { headers, body } = modernRequest('tools/list', params);
    return (await gateway.call('POST', `/mcp${query}`, body, undefined, headers)).body;
  };
  /** Sends a capability that only the SDK can check, so the request does not take the fast path. */
  const sdk = async (params: Record<string, unknown>, query: string) => {
    const meta = { 'io.modelcontextprotocol/clientCapabilities': { experimental: { own: { more: 1 } } } };
    const { headers, body } = modernRequest('tools/list', { ...params, _meta: meta });
    expect(eraOf(headers, body)).toBe('modern');
    return (await gateway.call('POST', `/mcp${query}`, body, undefined, headers)).body;
  };
  const legacy = (params: Record<string, unknown>, query: string) =>
    gateway.rpc('tools/list', params, undefined, `/mcp${query}`);

  it.each([
    ['legacy', legacy],
    ['hot', hot],
    ['sdk', sdk],
  ])('pages of about 1 MiB, each tool once: %s', async (_, ask) => {
    const names: string[] = [];
    let pages = 0;
    for (let cursor: string | undefined, more = true; more; pages += 1) {
      const { result } = await ask(cursor === undefined ? {} : { cursor }, '?names=both');
      expect(JSON.stringify(result.tools).length).toBeLessThan(megabyte * 1.01);
      names.push(...result.tools.map(({ name }: { name: string }) => name));
      cursor = result.nextCursor as string | undefined;
      more = cursor !== undefined;
    }
    expect(pages).toBeGreaterThan(3);
    expect(names).toHaveLength(expected.length);
    expect(new Set(names)).toEqual(new Set(expected));
  });

  it.each([
    ['legacy', legacy],
    ['hot', hot],
    ['sdk', sdk],
  ])('a cursor of another list, another org or an unknown one is -32602: %s', async (_, ask) => {
    const cursor = (await legacy({}, '?names=both')).result.nextCursor as string;
    for (const [given, query] of [
      [cursor, '?names=canonical'],
      [cursor, '?names=both&agents=mem_a'],
      ['x', '?names=both'],
    ] as const)
      expect((await ask({ cursor: given }, query)).error.code).toBe(-32602);
    const elsewhere = await gateway.tokenOf('elsewhere', 'alice', 'admin');
    const foreign = await gateway.rpc('tools/list', { cursor }, elsewhere, '/mcp?names=both');
    expect(foreign.error.code).toBe(-32602);
    expect((await legacy({ cursor: 7 }, '?names=both')).error.code).toBe(-32602);
  });

  it('a batch may have one tools/list', async () => {
    const batch = Array.from({ length: 20 }, (_, id) => list(id));
    const { body } = await gateway.call('POST', '/mcp?names=both', batch);
    expect(body.map(({ id }: { id: number }) => id)).toEqual(batch.map(({ id }) => id));
    expect(body[0].result.tools.length).toBeGreaterThan(0);
    expect(body.slice(1).map(({ error }: any) => error.code)).toEqual(Array(19).fill(-32600));
  });

  it('the answers of a batch are bounded together', async () => {
    agents[0]!.set(data({ much: 'y'.repeat(1_500_000) }));
    const call = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'mem_a.s0', arguments: {} } };
    const { body } = await gateway.call(
      'POST',
      '/mcp',
      Array.from({ length: 8 }, (_, id) => ({ ...call, id })),
    );
    expect(JSON.stringify(body).length).toBeLessThan(8.1 * megabyte);
    const left = body.filter(({ error }: any) => error?.data.code === 'too_large');
    expect(left.length).toBeGreaterThan(0);
    expect(left.length).toBeLessThan(8);
  });

  it('a small answer still fits after a large one does not', () => {
    const gate = new BatchGate(() => undefined, 10);
    const [one, two] = [readMcpMessage(list(1)), readMcpMessage(list(2))];
    expect(gate.leave(one, '12345678')).toBe('12345678');
    expect(JSON.parse(gate.leave(two, '123')).error.data.code).toBe('too_large');
    expect(gate.leave(two, '12')).toBe('12');
  });
});

describe('MCP: a batch and the rate limit', () => {
  it('each message of a batch costs a token', async () => {
    const gateway = await startTestGateway({ RIALTO_RATE_LIMIT_PRINCIPAL: '10' });
    try {
      const token = await gateway.tokenOf('limited', 'alice', 'admin');
      const ping = Array.from({ length: 20 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' }));
      const { status, body } = await gateway.call('POST', '/mcp', ping, token);
      expect(status).toBe(200);
      const served = body.filter(({ result }: any) => result !== undefined).length;
      expect(served).toBe(10);
      expect(body.slice(served).map(({ error }: any) => error.data.code)).toEqual(Array(10).fill('rate_limited'));
      expect((await gateway.call('POST', '/mcp', list(1), token)).status).toBe(429);
    } finally {
      await gateway.close();
    }
  });
});

describe('the rate limits of an org', () => {
  it('one principal over its own limit does not affect the others', async () => {
    const gateway = await startTestGateway({ RIALTO_RATE_LIMIT_PRINCIPAL: '10', RIALTO_RATE_LIMIT_ORG: '40' });
    try {
      const flooder = await gateway.tokenOf('shared', 'mallory', 'viewer');
      const other = await gateway.tokenOf('shared', 'alice', 'viewer');
      const since = performance.now();
      const shots = Array.from({ length: 30 }, () => gateway.call('POST', '/mcp', list(1), flooder));
      const passed = (await Promise.all(shots)).filter(({ status }) => status === 200);
      const refilled = Math.ceil((performance.now() - since) / 6_000);
      expect(passed.length).toBeGreaterThanOrEqual(10);
      expect(passed.length).toBeLessThanOrEqual(10 + refilled);
      expect((await gateway.call('POST', '/mcp', list(1), other)).status).toBe(200);
    } finally {
      await gateway.close();
    }
  });
});

describe('MCP: standing streams', () => {
  let gateway: TestGateway;
  const open: EventReader[] = [];

  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  afterAll(async () => {
    open.forEach((reader) => reader.close());
    await gateway.close();
  });

  const listen = async (token: string) => {
    const { headers, body } = modernRequest('subscriptions/listen', { notifications: { toolsListChanged: true } });
    const reader = await openEvents(`${gateway.url}/mcp`, { method: 'POST', headers, token, body });
    open.push(reader);
    return reader;
  };
  const standing = async (token: string) => {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } };
    const opening = { jsonrpc: '2.0', id: 1, method: 'initialize', params };
    const session = (await gateway.call('POST', '/mcp', opening, token)).headers.get('mcp-session-id')!;
    const headers = { accept: 'text/event-stream', 'mcp-session-id': session };
    const reader = await openEvents(`${gateway.url}/mcp`, { headers, token });
    open.push(reader);
    return reader;
  };

  it('E5 end with the credential of their own caller, and not by other acts of an admin', async () => {
    const admin = await gateway.tokenOf('calm', 'ada', 'admin');
    const at = (method: string, path: string, body?: unknown) => gateway.call(method, path, body, admin);
    const key = (await at('POST', '/api/keys', { name: 'robot' })).body;
    const spare = (await at('POST', '/api/keys', { name: 'spare' })).body;
    const kim = { sub: 'kim', role: 'member', groups: ['a'] };
    await at('POST', '/api/orgs/calm/members', kim);
    const token = (sub: string, jti: string) => signToken({ org_domain: 'calm', sub, jti });
    const tokens = { ada: admin, kim: await token('kim', 'one'), again: await token('kim', 'two'), robot: key.key };
    const readers = Object.fromEntries(
      await Promise.all(Object.entries(tokens).map(async ([name, bearer]) => [name, await standing(bearer)] as const)),
    );
    expect(Object.values(readers).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const ended = (name: string): Promise<unknown> => readers[name]!.rest();

    await at('POST', '/api/orgs/calm/members', { sub: 'new', role: 'viewer' });
    await at('POST', '/api/orgs/calm/members', kim);
    await at('DELETE', '/api/orgs/calm/members/new');
    await at('DELETE', `/api/keys/${spare.id}`);
    await at('POST', '/api/tokens/revocations', { jti: 'one' });
    await ended('kim');
    const upstream = await TestUpstream.start();
    await at('POST', '/api/mcp/servers', { id: 'late', url: upstream.url });
    for (const name of ['ada', 'again', 'robot'])
      expect(await readers[name]!.next()).toMatchObject({ method: 'notifications/tools/list_changed' });
    await at('POST', '/api/orgs/calm/members', { ...kim, role: 'viewer' });
    await ended('again');
    await at('DELETE', `/api/keys/${key.id}`);
    await ended('robot');
    await at('POST', '/api/orgs/calm/secret', {});
    await ended('ada');
    await upstream.close();
  });

  it('subscriptions of the newest revision count as streams: 50 per principal, without ended ones', async () => {
    const token = await gateway.tokenOf('crowd', 'alice', 'admin');
    const readers = await Promise.all(Array.from({ length: 50 }, () => listen(token)));
    expect(readers.map(({ status }) => status)).toEqual(Array(50).fill(200));
    expect((await listen(token)).status).toBe(429);
    expect((await standing(token)).status).toBe(429);
    readers.forEach((reader) => reader.close());
    for (let status = 429; status !== 200;) status = (await listen(token)).status;
  });

  it.each([
    ['2025', standing],
    ['2026-07-28', listen],
  ])('abuse 6 a stream of the %s era ends with its key', async (_, opened) => {
    const key = (await gateway.call('POST', '/api/keys', { name: `key ${open.length}`, role: 'member' })).body;
    const reader = await opened(key.key);
    expect(reader.status).toBe(200);
    expect((await gateway.call('DELETE', `/api/keys/${key.id}`)).status).toBeLessThan(300);
    await reader.rest();
    expect((await opened(key.key)).status).toBe(401);
  });

  it.each([
    ['2025', standing],
    ['2026-07-28', listen],
  ])(
    'abuse 6 a stream of the %s era ends when its token expires',
    async (_, opened) => {
      await gateway.tokenOf('brief', 'alice', 'admin');
      const exp = Math.floor(Date.now() / 1_000) + 3;
      const reader = await opened(await signToken({ sub: 'alice', org_domain: 'brief', exp }));
      expect(reader.status).toBe(200);
      await reader.rest();
      expect(Date.now()).toBeGreaterThanOrEqual(exp * 1_000 - 50);
    },
    30_000, // the verifier accepts a token for one more minute of clock skew; a stream ends in time
  );

  it('abuse 6 a stream ends when its key expires', async () => {
    const until = Date.now() + 5_000;
    const asked = { name: 'brief', role: 'member', expiresAt: new Date(until).toISOString() };
    const { key } = (await gateway.call('POST', '/api/keys', asked)).body;
    const reader = await standing(key);
    expect(reader.status).toBe(200);
    await reader.rest();
    expect(Date.now()).toBeGreaterThanOrEqual(until - 50);
    expect((await standing(key)).status).toBe(401);
  });

  it('another org’s streams stay', async () => {
    const [one, two] = [
      await gateway.tokenOf('stay-a', 'alice', 'admin'),
      await gateway.tokenOf('stay-b', 'bob', 'admin'),
    ];
    const [gone, kept] = [await standing(one), await standing(two)];
    expect((await gateway.call('POST', '/api/orgs/stay-a/secret', {})).status).toBe(201);
    await gone.rest();
    await gateway.call('PATCH', '/api/orgs/stay-b', { toolNames: 'both' });
    expect(await kept.next()).toMatchObject({ method: 'notifications/tools/list_changed' });
  });
});

describe('clients that never read', () => {
  const servers: Server[] = [];
  const sockets: Socket[] = [];
  afterEach(() => {
    sockets.splice(0).forEach((socket) => socket.destroy());
    servers.splice(0).forEach((server) => server.close());
  });

  /**
   * Sends more data to a client that never reads than the operating system buffers. Resolves with the bytes that
   * reached the client before its connection was closed.
   */
  const unread = async (ms: number, less: Partial<ShareLimits> = {}, how: 'ended' | 'open' = 'ended') => {
    const answers = new UnreadAnswers(ms, { principal: Infinity, org: Infinity, process: Infinity, ...less });
    const server = createServer((_, response) => {
      if (how === 'open') {
        watchReader(response, ms);
        response.write('z'.repeat(full));
      } else {
        response.end('z'.repeat(full));
        answers.watchAnswer(response);
      }
      response.once('close', () => server.emit('gone'));
    });
    servers.push(server.listen(0, '127.0.0.1'));
    await once(server, 'listening');
    const gone = once(server, 'gone');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    sockets.push(socket.pause());
    socket.on('error', () => undefined);
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await gone;
    const closed = once(socket, 'close');
    socket.resume();
    await closed;
    return socket.bytesRead;
  };

  it('are disconnected after a while', async () => expect(await unread(100)).toBeLessThan(full));
  it.each(['principal', 'org', 'process'] as const)(
    'are disconnected at once when too much data of one %s waits',
    async (scope) => expect(await unread(3_600_000, { [scope]: megabyte })).toBeLessThan(full),
  );
  it('are disconnected while another client is served', async () =>
    expect(await unread(100, {}, 'open')).toBeLessThan(full));
});
