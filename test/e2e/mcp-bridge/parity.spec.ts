import { createServer, type Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, ProtocolError, Server } from '@modelcontextprotocol/server';
import { modernRequest } from '../../support/clients/mcp-clients.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';

const both = { accept: 'application/json, text/event-stream' };
const older = { ...both, 'mcp-protocol-version': '2025-11-25' };
const tool = { name: 'a2a_one_work', arguments: {} };

/** Starts a server with the same tool on the official SDK's own handler. */
async function startReference(listed: object): Promise<{ url: string; server: HttpServer }> {
  const handler = createMcpHandler(({ era }) => {
    const extensions = era === 'modern' ? { extensions: { 'io.modelcontextprotocol/tasks': {} } } : {};
    const lists = ['tools', 'resources', 'prompts'].map((list) => [list, { listChanged: true }]);
    const resources = { resources: { listChanged: true, subscribe: true } };
    const capabilities = { ...Object.fromEntries(lists), ...resources, completions: {}, logging: {}, ...extensions };
    const server = new Server({ name: 'reference', version: '1' }, { capabilities });
    server.setRequestHandler('resources/list', () => ({ resources: [] }));
    server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [] }));
    server.setRequestHandler('prompts/list', () => ({ prompts: [] }));
    for (const method of ['resources/read', 'prompts/get'] as const)
      server.setRequestHandler(method, () => {
        throw new ProtocolError(-32602, 'no such thing');
      });
    server.setRequestHandler('tools/list', ({ params }) => {
      if (params?.cursor !== undefined) throw new ProtocolError(-32602, 'an unknown cursor');
      return { tools: [listed] as never };
    });
    server.setRequestHandler('tools/call', async ({ params }) => {
      if (params.name !== tool.name) throw new ProtocolError(-32602, `Unknown tool: ${params.name}`);
      return { content: [{ type: 'text', text: '{"ok":true}' }], structuredContent: { ok: true } };
    });
    return server;
  });
  const serve = toNodeHandler(handler);
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

interface Row {
  title: string;
  method?: string;
  headers?: Record<string, string>;
  body?: unknown;
}

const legacy = (title: string, body: unknown, headers: Record<string, string> = older): Row => ({
  title,
  body,
  headers,
});
const rpc = (method: string, params?: unknown, id: unknown = 1) => ({
  jsonrpc: '2.0',
  id,
  method,
  ...(params ? { params } : {}),
});
const hello = (protocolVersion: string) =>
  rpc('initialize', { protocolVersion, capabilities: {}, clientInfo: { name: 'c', version: '1' } });

const legacyRows: Row[] = [
  ...['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2031-01-01'].map((version) =>
    legacy(`initialize ${version}`, hello(version), both),
  ),
  legacy('ping', rpc('ping')),
  legacy('ping with a text id', rpc('ping', undefined, 'a')),
  legacy('ping without a version header', rpc('ping'), both),
  legacy('tools/list', rpc('tools/list')),
  legacy('tools/call', rpc('tools/call', tool)),
  legacy('tools/call with _meta', rpc('tools/call', { ...tool, _meta: { progressToken: 't' } })),
  legacy('an unknown tool', rpc('tools/call', { name: 'none' })),
  legacy('an unknown method', rpc('no/such')),
  ...['resources/list', 'resources/templates/list', 'prompts/list'].map((method) => legacy(method, rpc(method))),
  legacy('an unknown resource', rpc('resources/read', { uri: 'no://where' })),
  legacy('an unknown prompt', rpc('prompts/get', { name: 'none' })),
  legacy('resources/subscribe without a session', rpc('resources/subscribe', { uri: 'no://where' })),
  legacy('a notification', { jsonrpc: '2.0', method: 'notifications/initialized' }),
  legacy('a cancellation of nothing', { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9 } }),
  legacy('an answer of the client', { jsonrpc: '2.0', id: 9, result: {} }),
  legacy('no JSON', '{"jsonrpc":'),
  legacy('no JSON-RPC', { hello: 1 }),
  legacy('JSON-RPC 1.0', { jsonrpc: '1.0', id: 1, method: 'ping' }),
  legacy('another content type', '{}', { ...older, 'content-type': 'text/plain' }),
  legacy('an unknown version header', rpc('ping'), { ...both, 'mcp-protocol-version': '1999-01-01' }),
  { title: 'GET without a session', method: 'GET', headers: { ...older, accept: 'text/event-stream' } },
  { title: 'DELETE without a session', method: 'DELETE', headers: older },
];

const modern = (title: string, method: string, params?: Record<string, unknown>, change: object = {}): Row => {
  const { headers, body } = modernRequest(method, params, 7);
  return { title, body, headers: JSON.parse(JSON.stringify({ ...headers, ...change })) as Record<string, string> };
};
/** Builds a valid call with one change. */
const changed = (title: string, change: (body: any) => unknown, headers: object = {}): Row => {
  const row = modern(title, 'tools/call', tool, headers);
  return { ...row, body: change(row.body) };
};
const withMeta = (title: string, meta: object): Row =>
  changed(title, (body) => {
    Object.assign(body.params._meta, meta);
    return body;
  });

const spoiltRows: Row[] = [
  changed('a text id', (body) => ({ ...body, id: 'seven' })),
  changed('an empty id', (body) => ({ ...body, id: '' })),
  changed('id 0', (body) => ({ ...body, id: 0 })),
  changed('a fractional id', (body) => ({ ...body, id: 1.5 })),
  changed('a null id', (body) => ({ ...body, id: null })),
  changed('an object as id', (body) => ({ ...body, id: {} })),
  changed('no id', ({ id: _, ...body }) => body),
  changed('a batch of one', (body) => [body]),
  changed('JSON-RPC 1.0', (body) => ({ ...body, jsonrpc: '1.0' })),
  changed('a list as params', (body) => ({ ...body, params: [] })),
  changed('a list as arguments', (body) => ({ ...body, params: { ...body.params, arguments: [] } })),
  changed('no arguments', ({ params: { arguments: _, ...params }, ...body }) => ({ ...body, params })),
  changed('no name', ({ params: { name: _, ...params }, ...body }) => ({ ...body, params })),
  changed('a number as name', (body) => ({ ...body, params: { ...body.params, name: 7 } })),
  changed('a superfluous member', (body) => ({ ...body, more: 1, params: { ...body.params, more: 1 } })),
  changed('the name encoded', (body) => body, {
    'mcp-name': `=?base64?${Buffer.from(tool.name).toString('base64')}?=`,
  }),
  changed('no name in the header', (body) => body, { 'mcp-name': undefined }),
  changed('a session header', (body) => body, { 'mcp-session-id': 'left-over' }),
  changed('another content type', (body) => body, { 'content-type': 'text/plain' }),
  withMeta('a progress token', { progressToken: 't' }),
  withMeta('an object as progress token', { progressToken: {} }),
  withMeta('no client info', { 'io.modelcontextprotocol/clientInfo': undefined }),
  withMeta('a broken client info', { 'io.modelcontextprotocol/clientInfo': { name: 1 } }),
  withMeta('no capabilities', { 'io.modelcontextprotocol/clientCapabilities': undefined }),
  withMeta('a list as capabilities', { 'io.modelcontextprotocol/clientCapabilities': [] }),
  withMeta('capabilities', {
    'io.modelcontextprotocol/clientCapabilities': {
      roots: { listChanged: true },
      elicitation: { form: {} },
      sampling: {},
    },
  }),
  withMeta('broken capabilities', { 'io.modelcontextprotocol/clientCapabilities': { roots: { listChanged: 7 } } }),
  withMeta('a log level', { 'io.modelcontextprotocol/logLevel': 'debug' }),
  withMeta('an unknown log level', { 'io.modelcontextprotocol/logLevel': 'loud' }),
  modern('a cursor', 'tools/list', { cursor: 'x' }),
  modern('a number as cursor', 'tools/list', { cursor: 7 }),
];

const withoutMeta = (): Row => {
  const { headers } = modernRequest('tools/list');
  return { title: 'no _meta', headers, body: rpc('tools/list') };
};

const modernRows: Row[] = [
  modern('server/discover', 'server/discover'),
  modern('tools/list', 'tools/list'),
  modern('tools/call', 'tools/call', tool),
  modern('an unknown tool', 'tools/call', { name: 'none' }),
  ...['resources/list', 'resources/templates/list', 'prompts/list'].map((method) => modern(method, method)),
  modern('an unknown resource', 'resources/read', { uri: 'no://where' }, { 'mcp-name': 'no://where' }),
  modern('an unknown prompt', 'prompts/get', { name: 'none' }),
  modern('an unknown method', 'no/such'),
  modern('initialize, which was removed', 'initialize'),
  modern('ping, which was removed', 'ping'),
  modern('another method in the header', 'tools/list', {}, { 'mcp-method': 'tools/call' }),
  modern('no method in the header', 'tools/list', {}, { 'mcp-method': undefined }),
  modern('another name in the header', 'tools/call', tool, { 'mcp-name': 'else' }),
  modern('another version in the header', 'tools/list', {}, { 'mcp-protocol-version': '2025-11-25' }),
  modern('an unknown version in the header', 'tools/list', {}, { 'mcp-protocol-version': '2031-01-01' }),
  modern(
    'an unknown version in both',
    'tools/list',
    {
      _meta: { 'io.modelcontextprotocol/protocolVersion': '2031-01-01' },
    },
    { 'mcp-protocol-version': '2031-01-01' },
  ),
  modern('no version in the header', 'tools/list', {}, { 'mcp-protocol-version': undefined }),
  withoutMeta(),
  modern('only a stream accepted', 'tools/list', {}, { accept: 'text/event-stream' }),
  modern('JSON alone', 'tools/list', {}, { accept: 'application/json' }),
];

describe('MCP: the door answers like the official SDK', () => {
  let gateway: TestGateway;
  let agent: StubAgent;
  let reference: { url: string; server: HttpServer };

  beforeAll(async () => {
    gateway = await startTestGateway();
    agent = await startStubAgent({ name: 'One' });
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url });
    const [listed] = (await gateway.rpc('tools/list')).result.tools;
    reference = await startReference(listed);
  });
  afterAll(async () => {
    await gateway.close();
    await agent.close();
    reference.server.closeAllConnections();
    await new Promise((resolve) => reference.server.close(resolve));
  });

  it.each([
    ...legacyRows.map((row) => ['2025', row.title, row] as const),
    ...[...modernRows, ...spoiltRows].map((row) => ['2026', row.title, row] as const),
  ])('era %s: %s', async (_era, _title, row) => {
    const [ours, theirs] = await Promise.all([
      ask(`${gateway.url}/mcp`, row, gateway.token),
      ask(`${reference.url}/mcp`, row),
    ]);
    expect(ours).toEqual(theirs);
  });
});

/** Returns the parts of an answer that the protocol fixes: status, id, code or result. Texts and data may differ. */
async function ask(url: string, { method = 'POST', headers, body }: Row, token?: string): Promise<object> {
  const response = await fetch(url, {
    method,
    headers: {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const data = /^data: (\{.*)$/m.exec(text)?.[1] ?? text;
  const message = data === '' ? undefined : JSON.parse(data);
  return {
    status: response.status,
    ...(message && { jsonrpc: message.jsonrpc, id: message.id, code: message.error?.code }),
    ...(message?.result && { result: fixedOf(message.result) }),
  };
}

function fixedOf({ serverInfo, instructions: _, _meta: __, ...result }: any): object {
  return { ...result, ...(serverInfo && { serverInfo: ['name', 'version'].every((key) => key in serverInfo) }) };
}
