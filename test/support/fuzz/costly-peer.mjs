// Answers calls with JSON from a file that the arguments name. It is an MCP server over HTTP (/json, /stream), over a
// WebSocket, and on standard input and output (argument `program`), and an A2A agent (/a2a).
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { WebSocketServer } from 'ws';

const contentOf = ({ file }) => (file === undefined ? '{}' : readFileSync(file, 'utf8'));

/** Members of the answer to `initialize` at the paths of servers that describe themselves at length. */
const long = {
  '/instructions': { instructions: 'i'.repeat(4_000_000) },
  '/title': { serverInfo: { name: 'costly', version: '1', title: 't'.repeat(4_000_000) } },
  '/capabilities': { capabilities: { tools: {}, experimental: { x: { long: Array(95_000).fill('c'.repeat(40)) } } } },
};

function answer({ id, method, params }, path) {
  if (id === undefined) return undefined;
  const withResult = (text) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${text}}`;
  switch (method) {
    case 'initialize': {
      const protocolVersion = '2025-11-25';
      const serverInfo = { name: 'costly', version: '1' };
      return withResult(JSON.stringify({ protocolVersion, capabilities: { tools: {} }, serverInfo, ...long[path] }));
    }
    case 'tools/list':
      return withResult('{"tools":[{"name":"read","inputSchema":{"type":"object"}}]}');
    case 'tools/call': {
      const text = contentOf(params.arguments);
      return withResult(`{"content":[{"type":"text","text":"read"}],"structuredContent":{"read":${text}}}`);
    }
    case 'SendMessage': {
      const text = contentOf(params.message.parts[0].data);
      return withResult(
        `{"task":{"id":"t${Math.random()}","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},` +
          `"artifacts":[{"artifactId":"a","parts":[{"data":{"read":${text}}}]}]}}`,
      );
    }
    default:
      return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32601,"message":"Method not found"}}`;
  }
}

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  if (request.url.includes('agent-card')) return response.end(JSON.stringify(card()));
  if (request.method !== 'POST') return response.writeHead(405).end();
  const text = answer(JSON.parse(Buffer.concat(chunks).toString()), request.url);
  if (text === undefined) return response.writeHead(202).end();
  const isStream = request.url === '/stream';
  response.setHeader('content-type', isStream ? 'text/event-stream' : 'application/json');
  response.end(isStream ? `event: message\ndata: ${text}\n\n` : text);
});

function card() {
  const url = `http://127.0.0.1:${server.address().port}/a2a`;
  return {
    name: 'costly',
    description: 'reads',
    version: '1',
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: {},
    defaultInputModes: ['application/json'],
    defaultOutputModes: ['application/json'],
    skills: [{ id: 'read', name: 'read', description: 'reads', tags: [] }],
  };
}

if (process.argv[2] === 'program') {
  createInterface({ input: process.stdin }).on('line', (line) => {
    const text = answer(JSON.parse(line));
    if (text !== undefined) process.stdout.write(`${text}\n`);
  });
} else {
  new WebSocketServer({ server, handleProtocols: () => 'mcp' }).on('connection', (socket) =>
    socket.on('message', (data) => {
      const text = answer(JSON.parse(data.toString()));
      if (text !== undefined) socket.send(text);
    }),
  );
  server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`));
}
