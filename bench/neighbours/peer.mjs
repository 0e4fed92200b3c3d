// All external servers of the members of an org: one MCP server that works and, at other paths, agents, MCP servers and
// webhook receivers that misbehave.
import { createServer } from 'node:http';

const tools = [{ name: 'echo', description: 'Says well.', inputSchema: { type: 'object' } }];
const mcp = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'peer', version: '1' },
  }),
  'tools/list': () => ({ tools }),
  'tools/call': () => ({ content: [{ type: 'text', text: 'well' }] }),
};
/** The behaviour of a call, by path. A server without an entry works correctly. */
const calls = {
  '/silent': () => undefined,
  '/reset': (response) => response.socket.destroy(),
  '/drip': (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const timer = setInterval(() => response.write(' '), 20);
    response.on('close', () => clearInterval(timer));
  },
  '/huge': (response, id) => {
    const text = 'x'.repeat(5_000_000);
    reply(response, { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }] } });
  },
};

const server = createServer((request, response) => {
  let body = '';
  response.on('error', () => undefined);
  request.on('data', (chunk) => (body += chunk));
  request.on('end', () => {
    const path = request.url;
    if (path.endsWith('agent-card.json') || path.endsWith('agent.json')) return reply(response, card());
    if (request.method !== 'POST') return response.writeHead(405).end();
    if (path === '/hook') return; // never answered
    const { id, method, params } = JSON.parse(body);
    if (id === undefined) return response.writeHead(202).end();
    if (method === 'tools/call' && calls[path]) return calls[path](response, id);
    if (mcp[method]) return reply(response, { jsonrpc: '2.0', id, result: mcp[method](params) });
    // A message to the agent is never answered.
    if (/message/i.test(method)) return;
    reply(response, { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } });
  });
});

function reply(response, value) {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

function card() {
  const url = `http://127.0.0.1:${server.address().port}/agent`;
  return {
    name: 'Silent',
    description: 'Never answers.',
    url,
    protocolVersion: '0.3.0',
    preferredTransport: 'JSONRPC',
    version: '1.0.0',
    capabilities: {},
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'wait', name: 'Wait', description: 'Waits.', tags: [] }],
  };
}

server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => console.log(`ready http://127.0.0.1:${server.address().port}`));
process.on('SIGTERM', () => process.exit(0));
