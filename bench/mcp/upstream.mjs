// An MCP server on standard input and output without an SDK, so that the benchmark does not measure an SDK. argv[2] is
// the number of its tools.
import { createInterface } from 'node:readline';

const count = Number(process.argv[2] ?? 1);
const text = 'x'.repeat(500);
const inputSchema = {
  type: 'object',
  properties: { n: { type: 'integer', description: 'A number.' } },
  required: ['n'],
};
const tools = Array.from({ length: count }, (_, index) => ({
  name: index === 0 ? 'echo' : `tool-${index}`,
  description: `Repeats the arguments of tool ${index}.`,
  inputSchema,
}));
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'bench', version: '1' },
  }),
  'tools/list': () => ({ tools }),
  'tools/call': ({ arguments: { n } }) => ({ content: [{ type: 'text', text: `${n} ${text}` }] }),
  ping: () => ({}),
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  const reply = answer ? { result: answer(params) } : { error: { code: -32601, message: 'Method not found' } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...reply })}\n`);
});
