import { publish, userMessage } from '../../support/clients/a2a.js';
import { message } from '../../support/clients/a2e.js';

import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { freePort } from '../../support/gateway/services.js';
import {
  requestText,
  StrictConnection,
  type StrictRequest,
  type StrictResponse,
} from '../../support/clients/strict-http.js';

type Row = readonly [title: string, status: number, request: () => StrictRequest];

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'wire', version: '1' } },
};

describe('plain responses, byte by byte', () => {
  let gateway: TestGateway;
  let bearer: Record<string, string>;
  let etag: string;
  let session: string;
  const large = 'x'.repeat(30_000);
  const card = '/.well-known/agent-card.json';
  const rpcTo = (agent: string, body: StrictRequest['body'], more: Record<string, string> = {}): StrictRequest => ({
    path: `/a2a/agents/${agent}`,
    headers: { ...bearer, 'a2a-version': '1.0', ...more },
    body,
  });
  const sending = (id?: number) => ({
    jsonrpc: '2.0',
    id,
    method: 'SendMessage',
    params: { message: userMessage('hello') },
  });
  const mcp = (body: StrictRequest['body'], more: Record<string, string> = {}): StrictRequest => ({
    path: '/mcp',
    headers: { ...bearer, 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...more },
    body,
  });
  const api = (method: string, path: string, body?: StrictRequest['body'], more: Record<string, string> = {}) => ({
    method,
    path: `/api/${path}`,
    headers: { ...bearer, ...more },
    body,
  });
  const text = { 'content-type': 'text/plain' };
  const json = { 'content-type': 'application/json' };

  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_MAX_BODY_BYTES: '20000', METRICS_PORT: String(await freePort()) });
    bearer = { authorization: `Bearer ${gateway.token}` };
    await publish(gateway);
    await publish(gateway, { name: 'box', executor: { kind: 'mailbox' } });
    etag = (await gateway.call('GET', card)).headers.get('etag')!;
  });
  beforeEach(async () => {
    const accept = 'application/json, text/event-stream';
    session = (await gateway.call('POST', '/mcp', initialize, undefined, { accept })).headers.get('mcp-session-id')!;
  });
  afterEach(() => expect(gateway.log.filter((line) => line.includes('"level":50'))).toEqual([]));
  afterAll(() => gateway.close());

  const open = (): Promise<StrictConnection> => StrictConnection.open(gateway.url);

  /**
   * Sends a request, then a second one. After a response with `Connection: close` it waits for the end of the
   * connection.
   */
  const exchanged = async (request: StrictRequest): Promise<StrictResponse> => {
    const one = await open();
    const response = await one.exchange(request);
    if (response.headers.connection === 'close') await one.ended();
    else {
      expect(await one.exchange({ path: '/version' })).toMatchObject({ status: 200 });
      await one.finish();
    }
    return response;
  };

  const rows: Row[] = [
    ['a card', 200, () => ({ path: card })],
    ['a HEAD of a card', 200, () => ({ method: 'HEAD', path: card })],
    ['a card with the entity tag of the client', 304, () => ({ path: card, headers: { 'if-none-match': etag } })],
    ['a HEAD of the same', 304, () => ({ method: 'HEAD', path: card, headers: { 'if-none-match': etag } })],
    ['a preflight', 204, () => ({ method: 'OPTIONS', path: card })],
    ['the card of an unknown agent', 404, () => ({ path: '/a2a/agents/none/.well-known/agent-card.json' })],
    ['a HEAD of the card of an unknown agent', 404, () => ({ method: 'HEAD', path: '/a2a/none/agent.json' })],
    ['a POST to a card', 405, () => ({ method: 'POST', path: card, body: { a: 1 } })],
    ['JSON-RPC', 200, () => rpcTo('echo', sending(1))],
    ['a notification of JSON-RPC', 204, () => rpcTo('echo', sending())],
    ['a parse error of JSON-RPC', 200, () => rpcTo('echo', '{', json)],
    ['JSON-RPC without a credential', 401, () => rpcTo('echo', sending(1), { authorization: 'Bearer rlt_no' })],
    ['JSON-RPC to an unknown agent', 404, () => rpcTo('none', sending(1))],
    ['a GET of JSON-RPC', 405, () => ({ path: '/a2a/agents/echo', headers: bearer })],
    ['a HEAD of JSON-RPC', 405, () => ({ method: 'HEAD', path: '/a2a/agents/echo', headers: bearer })],
    ['JSON-RPC that is too large', 413, () => rpcTo('echo', { text: large })],
    ['JSON-RPC as text', 415, () => rpcTo('echo', '{}', text)],
    ['a list of the management API', 200, () => api('GET', 'orgs')],
    ['a HEAD of a list', 200, () => api('HEAD', 'orgs')],
    ['a new org', 201, () => api('POST', 'orgs', { slug: 'wire-new' })],
    ['the same org again', 409, () => api('POST', 'orgs', { slug: 'wire-new' })],
    ['a deleted session', 204, () => api('DELETE', `mcp/${session}`)],
    ['a body that does not fit', 400, () => api('POST', 'orgs', { slug: 7 })],
    ['a body that is not JSON', 400, () => api('POST', 'orgs', '{', json)],
    ['a path that does not decode', 400, () => api('GET', 'orgs/%00')],
    ['the management API without a credential', 401, () => ({ path: '/api/orgs' })],
    ['the same with a body', 401, () => ({ path: '/api/orgs', body: { slug: 'none' } })],
    ['a HEAD of the same', 401, () => ({ method: 'HEAD', path: '/api/orgs' })],
    ['a PUT of a resource', 405, () => api('PUT', 'a2a/agents', { a: 1 })],
    ['a GET of an action', 405, () => api('GET', 'mcp/tools/call')],
    ['an unknown path', 404, () => api('GET', 'nothing')],
    ['a body for an unknown path', 404, () => api('POST', 'nothing', { a: 1 })],
    ['a body that is too large', 413, () => api('POST', 'orgs', { text: large })],
    ['a body as text', 415, () => api('POST', 'orgs', 'slug', text)],
    ['a URL that is too long', 413, () => api('GET', `orgs?${large.slice(0, 9_000)}`)],
    ['MCP', 200, () => mcp(initialize)],
    ['a notification of MCP', 202, () => mcp({ jsonrpc: '2.0', method: 'notifications/initialized' })],
    ['MCP that is not JSON', 400, () => mcp('{')],
    ['MCP that is too large', 413, () => mcp({ text: large })],
    ['MCP without a credential', 401, () => mcp(initialize, { authorization: 'Bearer rlt_no' })],
    ['MCP as text', 415, () => mcp('{}', text)],
    [
      'a GET of MCP that accepts no stream',
      406,
      () => ({ path: '/mcp', headers: { ...bearer, accept: 'text/html', 'mcp-session-id': session } }),
    ],
    ['the end of a session', 204, () => ({ ...mcp(undefined, { 'mcp-session-id': session }), method: 'DELETE' })],
    ['a PUT of MCP', 405, () => ({ ...mcp(initialize), method: 'PUT' })],
    ['A2E', 200, () => ({ path: '/a2e', headers: bearer, body: message('mcp/server/list/req') })],
    ['A2E that is not JSON', 400, () => ({ path: '/a2e', headers: { ...bearer, ...json }, body: '{' })],
    ['A2E that is too large', 413, () => ({ path: '/a2e', headers: bearer, body: { text: large } })],
    ['A2E without a credential', 401, () => ({ path: '/a2e', body: message('mcp/server/list/req') })],
    ['a GET of A2E', 405, () => ({ path: '/a2e', headers: bearer })],
    ['the liveness probe', 200, () => ({ path: '/livez' })],
    ['the readiness probe', 200, () => ({ path: '/readyz' })],
    ['a HEAD of the readiness probe', 200, () => ({ method: 'HEAD', path: '/readyz' })],
    ['the version', 200, () => ({ path: '/version' })],
    ['the entry point', 200, () => ({ path: '/' })],
    ['another method at the entry point', 405, () => ({ method: 'POST', path: '/' })],
    ['the documentation', 200, () => ({ path: '/docs' })],
    ['the description of the API', 200, () => ({ path: '/docs-json' })],
    ['the board of the queues', 200, () => ({ path: '/admin/queues/', headers: bearer })],
    ['the board without a credential', 401, () => ({ path: '/admin/queues/' })],
    ['an unknown path of the board', 404, () => ({ path: '/admin/queues/api/none', headers: bearer })],
    ['the data of an org', 200, () => api('GET', 'orgs/default/export')],
    ['a HEAD of the same', 200, () => api('HEAD', 'orgs/default/export')],
    ['an empty mailbox', 204, () => api('POST', 'mailbox/box/lease?waitMs=200')],
    ['an unknown expectation', 417, () => ({ path: '/version', headers: { expect: 'a-miracle' } })],
  ];

  it.each(rows)('%s: status %i, and the next request is answered', async (_, status, request) => {
    const { method } = request();
    const response = await exchanged(request());
    expect(response).toMatchObject({ status, version: '1.1', informational: [] });
    expect(response.headers).toHaveProperty('date');
    if (status !== 417) expect(response.headers).toHaveProperty('x-request-id');
    if (status === 401) expect(response.headers).toHaveProperty('www-authenticate');
    if (status === 405) expect(response.headers).toHaveProperty('allow');
    if (status >= 400 && status !== 417 && method !== 'HEAD') expect(() => JSON.parse(response.body)).not.toThrow();
  });

  it('a write of a viewer: status 403, and the next request is answered', async () => {
    const token = await gateway.tokenOf('default', 'wire-viewer', 'viewer');
    const headers = { authorization: `Bearer ${token}` };
    expect(await exchanged({ path: '/api/orgs', headers, body: { slug: 'wire-none' } })).toMatchObject({ status: 403 });
  });

  it('has the same headers for HEAD as for GET', async () => {
    for (const path of [card, '/', '/version', '/livez', '/docs-json']) {
      const [head, get] = [await exchanged({ method: 'HEAD', path }), await exchanged({ path })];
      const known = ({ date: _d, 'x-request-id': _r, ...rest }: StrictResponse['headers']) => rest;
      expect(known(head.headers)).toEqual(known(get.headers));
    }
  });

  it('answers all of them on one connection', async () => {
    let one = await open();
    for (const [title, status, make] of rows.filter(([, wanted]) => wanted !== 201 && wanted !== 409)) {
      const request = make();
      if (request.path.endsWith(session)) continue;
      const response = await one.exchange(request);
      expect([title, response.status]).toEqual([title, request.method === 'DELETE' ? 204 : status]);
      if (response.headers.connection !== 'close') continue;
      await one.ended();
      one = await open();
    }
    await one.finish();
  });

  it('delivers a task from a mailbox while its worker waits', async () => {
    const one = await open();
    one.send(api('POST', 'mailbox/box/lease?waitMs=30000'));
    const params = { message: userMessage('work'), configuration: { returnImmediately: true } };
    expect(await exchanged(rpcTo('box', { jsonrpc: '2.0', id: 1, method: 'SendMessage', params }))).toMatchObject({
      status: 200,
    });
    expect(await one.response('POST')).toMatchObject({ status: 200, body: expect.stringContaining('"work"') });
    expect(await one.exchange({ path: '/livez' })).toMatchObject({ status: 200 });
    await one.finish();
  });

  it('sends the data of an org in chunks to the last line', async () => {
    const { body, chunks, headers } = await exchanged(api('GET', 'orgs/default/export'));
    const lines = body.trimEnd().split('\n');
    expect(JSON.parse(lines.at(-1)!)).toEqual({ kind: 'end', lines: lines.length - 1 });
    expect([headers['transfer-encoding'], chunks!.length > 0]).toEqual(['chunked', true]);
  });

  it('serves the metrics in the same way', async () => {
    const one = await StrictConnection.open(`http://127.0.0.1:${gateway.gateway.metricsPort}`);
    for (const [request, status] of [
      [{ path: '/metrics' }, 200],
      [{ method: 'HEAD', path: '/metrics' }, 200],
      [{ path: '/none' }, 404],
      [{ path: '/metrics', body: large }, 200],
      [{ path: '/metrics' }, 200],
    ] as const)
      expect(await one.exchange(request)).toMatchObject({ status });
    one.write(requestText({ path: '/metrics' }).repeat(5));
    for (let index = 0; index < 5; index++) expect(await one.response()).toMatchObject({ status: 200 });
    await one.finish();
  });
});
