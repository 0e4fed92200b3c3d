import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Answers one call of a tool. */
export type Reply = (id: unknown, response: ServerResponse) => void;
export const json = (response: ServerResponse, body: unknown): void =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
/** Begins a stream of events. */
export const eventStream = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream' });

/** Starts an MCP server with a correct handshake and a scripted answer for each tool. */
export async function startHostile(tools: unknown[] | string, calls: Record<string, Reply> = {}) {
  const http = createServer((request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, any>;
      if (id === undefined) return void response.writeHead(202).end();
      const result = (value: unknown): void => json(response, { jsonrpc: '2.0', id, result: value });
      if (method === 'initialize')
        return result({
          protocolVersion: '2025-11-25',
          capabilities: { tools: {} },
          serverInfo: { name: 'h', version: '1' },
        });
      if (method === 'tools/list') {
        const text = typeof tools === 'string' ? tools : JSON.stringify(tools);
        response.writeHead(200, { 'content-type': 'application/json' });
        return void response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"tools":${text}}}`);
      }
      if (method === 'tools/call') return calls[params.name]!(id, response);
      return json(response, { jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } });
    });
  });
  await new Promise<void>((done) => http.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    close: () => {
      http.closeAllConnections();
      return new Promise((done) => http.close(done));
    },
  };
}
