// The server to compare with: the official MCP SDK's stateless server (2.x). It answers a no-op tool without a hop and
// stores nothing.
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, Server } from '@modelcontextprotocol/server';

const handler = createMcpHandler(() => {
  const server = new Server({ name: 'peer', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', () => ({ tools: [{ name: 'noop', inputSchema: { type: 'object' } }] }));
  server.setRequestHandler('tools/call', () => ({ content: [{ type: 'text', text: 'x'.repeat(500) }] }));
  return server;
});
const serve = toNodeHandler(handler);
const server = createServer((request, response) => void serve(request, response));
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => console.log(`ready http://127.0.0.1:${server.address().port}/mcp`));
process.on('SIGTERM', () => process.exit(0));
