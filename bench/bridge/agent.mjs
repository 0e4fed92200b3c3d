// A foreign agent with a very low cost: v0.3 JSON-RPC on plain node:http, one data artifact.
import { createServer } from 'node:http';

const artifact = `{"artifactId":"a1","parts":[{"kind":"data","data":{"ok":true,"text":"${'x'.repeat(500)}"}}]}`;
const status = '{"state":"completed"}';
const task = `{"kind":"task","id":"t1","contextId":"c1","status":${status},"artifacts":[${artifact}]}`;
const answer = (id) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${task}}`;

const server = createServer((request, response) => {
  let body = '';
  request.on('data', (chunk) => (body += chunk));
  request.on('end', () => {
    const text = request.method === 'GET' ? card() : answer(JSON.parse(body).id);
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
      .end(text);
  });
});

function card() {
  return JSON.stringify({
    name: 'Bench',
    description: 'Answers at once.',
    url: `http://127.0.0.1:${server.address().port}/`,
    protocolVersion: '0.3.0',
    preferredTransport: 'JSONRPC',
    version: '1.0.0',
    capabilities: {},
    defaultInputModes: ['application/json'],
    defaultOutputModes: ['application/json'],
    skills: [
      {
        id: 'echo',
        name: 'Echo',
        description: 'Answers.',
        tags: [],
        inputSchema: { type: 'object', properties: { n: { type: 'integer' } } },
      },
    ],
  });
}

server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => console.log(`ready http://127.0.0.1:${server.address().port}`));
process.on('SIGTERM', () => process.exit(0));
