// Serves any number of agents with different cards: `/agents/{n}`. One agent in a hundred has the tag `rare`. Each
// agent answers each message with `done`.
import { createServer } from 'node:http';
import { json as readJson } from 'node:stream/consumers';

const words = 'amber basil cedar delta ember fjord grove heron inlet jetty kiosk lotus maple nectar ocean pearl'.split(
  ' ',
);
const wordOf = (n, step) => words[(n * step + (n >> 4)) % words.length];

const server = createServer(async (request, response) => {
  const n = Number(/^\/agents\/(\d+)/.exec(request.url)?.[1]);
  const text = JSON.stringify(request.method === 'POST' ? answerTo(await readJson(request)) : cardOf(n));
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text);
});

function answerTo({ id }) {
  const result = { kind: 'message', messageId: 'm', role: 'agent', parts: [{ kind: 'text', text: 'done' }] };
  return { jsonrpc: '2.0', id, result };
}

function cardOf(n) {
  const skill = (id, step) => ({
    id,
    name: `${wordOf(n, step)} ${id}`,
    description: `Takes ${wordOf(n, step + 1)} and returns ${wordOf(n, step + 2)} of ${wordOf(n, 7)}.`,
    tags: [wordOf(n, 3), `tag-${n}`, ...(n % 100 === 7 ? ['rare'] : [])],
  });
  return {
    name: `Agent ${n}`,
    description: `Answers about ${wordOf(n, 5)}.`,
    url: `http://127.0.0.1:${server.address().port}/agents/${n}/`,
    protocolVersion: '0.3.0',
    preferredTransport: 'JSONRPC',
    version: '1.0.0',
    capabilities: {},
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [skill('convert', 1), skill('explain', 2)],
  };
}

server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => console.log(`ready http://127.0.0.1:${server.address().port}`));
process.on('SIGTERM', () => process.exit(0));
