import pg from 'pg';
import { connectLegacySdk } from '../../support/clients/mcp-clients.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { openEvents } from '../../support/clients/mcp-events.js';
import { rawRequest } from '../../support/clients/raw-http.js';
import { startStubAgent } from '../../support/stubs/stub-agent.js';

const request = (method: string, params?: unknown) => ({
  jsonrpc: '2.0',
  id: 1,
  method,
  ...(params ? { params } : {}),
});
const hello = request('initialize', {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'raw', version: '1' },
});
const unknownId = '01a2012a-6729-7012-b58a-02841e156891';
const stream = { accept: 'text/event-stream' };

describe('MCP: sessions', () => {
  let gateway: TestGateway;
  let bob: string;

  beforeAll(async () => {
    gateway = await startTestGateway();
    bob = await gateway.tokenOf('default', 'bob');
  });
  afterAll(() => gateway.close());

  const open = async (at = gateway, token = bob) =>
    (await at.call('POST', '/mcp', hello, token)).headers.get('mcp-session-id')!;
  const ping = (session: string, token = bob, at = gateway) =>
    at.call('POST', '/mcp', request('ping'), token, { 'mcp-session-id': session });
  const bound = (session: string, token = bob, at = gateway) =>
    at.call('POST', `/api/mcp/${session}`, request('ping'), token);

  it('RE-80 abuse 40 a session belongs to its principal: for others it does not exist, by header or URL', async () => {
    const session = await open();
    const others = [
      await gateway.tokenOf('default', 'mallory', 'admin'),
      await gateway.tokenOf('other', 'bob', 'admin'),
      gateway.token,
    ];
    for (const token of others) {
      for (const answer of [await ping(session, token), await bound(session, token)]) {
        expect([answer.status, answer.body.error.code, answer.body.id]).toEqual([404, -32000, null]);
        expect(answer.body.error.message).toBe('Session not found');
      }
      for (const method of ['GET', 'DELETE']) {
        const answer = await gateway.call(method, '/mcp', undefined, token, { ...stream, 'mcp-session-id': session });
        expect([method, answer.status]).toEqual([method, 404]);
      }
    }
    expect((await ping(session)).body.result).toEqual({});
    expect((await bound(session)).body.result).toEqual({});
    expect((await gateway.call('POST', `/api/mcp/${session}`, request('ping'), null)).status).toBe(401);
  });

  it('abuse 40 an unknown session is 404 and never another one', async () => {
    await open();
    for (const id of [unknownId, 'x', '', "' or 1=1 --", 'a'.repeat(90), '../mcp']) {
      if (id !== '') expect([id, (await ping(id)).status]).toEqual([id, 404]);
      const path = await bound(encodeURIComponent(id));
      expect([id, path.status]).toEqual([id, 404]);
    }
    // Without a session the call is still served, but standing streams are not.
    expect((await gateway.call('POST', '/mcp', request('ping'), bob)).body.result).toEqual({});
    for (const method of ['GET', 'DELETE'])
      expect((await gateway.call(method, '/mcp', undefined, bob, stream)).status).toBe(405);
  });

  it('abuse 40 DELETE ends a session, for good', async () => {
    const session = await open();
    const remove = () => gateway.call('DELETE', '/mcp', undefined, bob, { 'mcp-session-id': session });
    expect((await remove()).status).toBe(204);
    expect((await ping(session)).status).toBe(404);
    expect((await bound(session)).status).toBe(404);
    expect((await remove()).status).toBe(404);
  });

  it('RE-81 a session works on a second process and after a restart', async () => {
    const session = await open();
    const second = await startTestGateway({}, gateway);
    expect((await ping(session, bob, second)).body.result).toEqual({});
    const standing = await openEvents(`${second.url}/mcp`, {
      token: bob,
      headers: { ...stream, 'mcp-session-id': session },
    });
    expect(standing.status).toBe(200);
    standing.close();
    await second.close();
    const third = await startTestGateway({}, gateway);
    expect((await bound(session, bob, third)).body.result).toEqual({});
    await third.call('DELETE', '/mcp', undefined, bob, { 'mcp-session-id': session });
    expect((await ping(session)).status).toBe(404);
    await third.close();
  });

  it('are limited per principal: a new one replaces the one that was not used for the longest time', async () => {
    const carol = await gateway.tokenOf('default', 'carol');
    const first = await open(gateway, carol);
    await gateway.sql(
      `insert into mcp_sessions (id, org_id, principal, protocol_version, last_seen_at)
       select gen_random_uuid(), org_id, principal, protocol_version, now() - interval '1 second' * n
       from mcp_sessions, generate_series(1, 1200) n where id = $1`,
      [first],
    );
    await open(gateway, carol);
    const rows = `select count(*)::int as count, bool_or(m.id = $1) as first from mcp_sessions m
       where principal = (select principal from mcp_sessions where id = $1)`;
    expect(await gateway.sql(rows, [first])).toEqual([{ count: 1_000, first: true }]);

    // X3.10: many sessions were opened at the same time, and each held a connection while it waited to delete the same
    // rows.
    const other = new pg.Client({ connectionString: gateway.database.url });
    await other.connect();
    try {
      await other.query('begin');
      await other.query('select from mcp_sessions for update');
      expect(await Promise.all(Array.from({ length: 30 }, () => open(gateway, carol)))).not.toContain(null);
      expect(await gateway.sql(rows, [first])).toEqual([{ count: 1_030, first: true }]);
    } finally {
      await other.end();
    }
    await open(gateway, carol);
    expect(await gateway.sql(rows, [first])).toEqual([{ count: 1_000, first: expect.any(Boolean) }]);
  });

  it('are not opened by an invalid message', async () => {
    const { jsonrpc: _none, ...bare } = hello;
    const answer = await gateway.call('POST', '/mcp', bare, bob);
    expect([answer.status, answer.headers.get('mcp-session-id')]).toEqual([400, null]);
  });

  it('an official client ends its session and cannot continue', async () => {
    const agent = await startStubAgent({ name: 'Ends' });
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url });
    const { client, transport, callTool, close } = await connectLegacySdk(`${gateway.url}/mcp`, bob);
    expect((await callTool({ name: 'ends.work' })).structuredContent).toEqual({ ok: true });
    await transport.terminateSession();
    expect(transport.sessionId).toBeUndefined();
    await close();
    expect(client.transport).toBeUndefined();
    await agent.close();
  });

  it('abuse 40 a rebound Host is refused before any other check', async () => {
    const { port } = new URL(gateway.url);
    const from = (host: string) =>
      rawRequest(`${gateway.url}/mcp`, {
        headers: { host, authorization: `Bearer ${bob}`, 'content-type': 'application/json' },
        body: request('ping'),
      });
    for (const host of ['evil.example', `evil.example:${port}`, '169.254.169.254', 'localhost.evil.example'])
      expect([host, (await from(host)).status]).toEqual([host, 403]);
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`]) expect((await from(host)).status).toBe(200);
  });

  it('RE-43 standing streams are limited per principal, and an ended one is not counted', async () => {
    const session = await open();
    const one = () =>
      openEvents(`${gateway.url}/mcp`, { token: bob, headers: { ...stream, 'mcp-session-id': session } });
    const readers = await Promise.all(Array.from({ length: 50 }, one));
    expect(readers.every(({ status }) => status === 200)).toBe(true);
    const refused = await gateway.call('GET', '/mcp', undefined, bob, { ...stream, 'mcp-session-id': session });
    expect([refused.status, refused.body.error.data.code]).toEqual([429, 'rate_limited']);
    expect(refused.headers.get('retry-after')).toBe('10');
    const admin = await gateway.call('POST', '/mcp', hello);
    const other = await openEvents(`${gateway.url}/mcp`, {
      token: gateway.token,
      headers: { ...stream, 'mcp-session-id': admin.headers.get('mcp-session-id')! },
    });
    expect(other.status).toBe(200);
    [...readers, other].forEach((reader) => reader.close());
    for (let again = await one(); ; again = await one()) {
      again.close();
      if (again.status === 200) break;
    }
  });
});
