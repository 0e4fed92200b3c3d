// The older SDK (1.x) in its documented stateless form on Express: a server and a transport per request.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import express from 'express';

const app = express();
app.use(express.json());
app.post('/mcp', async (request, response) => {
  const server = new McpServer({ name: 'peer', version: '1' });
  server.registerTool('noop', { description: 'nothing' }, () => ({
    content: [{ type: 'text', text: 'x'.repeat(500) }],
  }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
  response.on('close', () => {
    void transport.close();
    void server.close();
  });
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
});
const listening = app.listen(0, '127.0.0.1', () =>
  console.log(`ready http://127.0.0.1:${listening.address().port}/mcp`),
);
listening.keepAliveTimeout = 60_000;
process.on('SIGTERM', () => process.exit(0));
