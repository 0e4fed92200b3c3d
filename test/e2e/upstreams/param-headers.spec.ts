import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { connectLegacySdk, connectSdk, modernRequest } from '../../support/clients/mcp-clients.js';

const inputSchema = {
  type: 'object',
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    where: { type: 'object', properties: { count: { type: 'integer', 'x-mcp-header': 'Count' } } },
  },
  required: ['region'],
};

/**
 * Starts an official server of the 2026-07-28 revision, which refuses calls without the headers that its schema
 * demands.
 */
async function startOfficial(seen: IncomingHttpHeaders[]) {
  const handler = createMcpHandler(
    () => {
      const server = new McpServer({ name: 'official', version: '1' });
      server.registerTool('reg', { inputSchema: fromJsonSchema(inputSchema as never) }, (args) => ({
        content: [{ type: 'text', text: JSON.stringify(args) }],
      }));
      return server;
    },
    { legacy: 'reject' },
  );
  const serve = toNodeHandler(handler);
  const http = createServer((request, response) => {
    if (request.headers['mcp-method'] === 'tools/call') seen.push(request.headers);
    void serve(request, response);
  });
  await new Promise<void>((listening) => http.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    close: async () => {
      await handler.close();
      http.closeAllConnections();
      await new Promise((closed) => http.close(closed));
    },
  };
}

describe('headers that repeat arguments', () => {
  let gateway: TestGateway;
  let server: Awaited<ReturnType<typeof startOfficial>>;
  const seen: IncomingHttpHeaders[] = [];
  beforeAll(async () => {
    gateway = await startTestGateway();
    server = await startOfficial(seen);
    expect((await gateway.call('POST', '/api/mcp/servers', { id: 'own', url: server.url })).status).toBe(201);
  });
  beforeEach(() => void seen.splice(0));
  afterAll(async () => {
    await gateway.close();
    await server.close();
  });

  const args = { region: 'Zürich', where: { count: 7 } };
  const text = JSON.stringify(args);
  const asked = { name: 'own__reg', arguments: args };
  const call = async (more: Record<string, string>, token = gateway.token) => {
    const { headers, body } = modernRequest('tools/call', asked);
    return gateway.call('POST', '/mcp', body, token, { ...headers, accept: 'application/json', ...more });
  };
  const right = { 'mcp-param-region': '=?base64?WsO8cmljaA==?=', 'mcp-param-count': '7' };

  it('are sent to a server with a schema that demands them, for every caller', async () => {
    const modern = await connectSdk(`${gateway.url}/mcp`, gateway.token, 'pinned');
    const legacy = await connectLegacySdk(`${gateway.url}/mcp`, gateway.token);
    await modern.listTools();
    for (const client of [modern, legacy]) expect((await client.callTool(asked)).content[0]!.text).toBe(text);
    await Promise.all([modern.close(), legacy.close()]);
    const { body } = await gateway.call('POST', '/api/mcp/tools/call', { name: 'reg', arguments: args });
    expect(body.result.content[0].text).toBe(text);
    expect(seen).toEqual(Array(3).fill(expect.objectContaining(right)));
  });

  it('are compared with the arguments of callers with that revision, after the call is permitted', async () => {
    expect((await call(right)).body.result.content[0].text).toBe(text);
    seen.splice(0);
    const { 'mcp-param-region': region } = right;
    const wrongs: Record<string, string>[] = [
      {},
      { 'mcp-param-region': region },
      { ...right, 'mcp-param-region': 'Bern' },
    ];
    for (const wrong of wrongs) {
      const { status, body } = await call(wrong);
      expect([status, body.error.code, body.error.data.code]).toEqual([400, -32020, 'header_mismatch']);
    }
    const forbid = 'forbid(principal, action == Action::"mcp_call", resource == Tool::"own__reg");';
    await gateway.call('POST', '/api/policies', { name: 'no-reg', text: forbid });
    expect((await call({})).body.error.code).toBe(-32003);
    await gateway.call('DELETE', '/api/policies/no-reg');
    expect(seen).toEqual([]);
  });
});
