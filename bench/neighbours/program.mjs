// An MCP server on standard input and output that prints a line of noise every millisecond and never answers a call.
import { createInterface } from 'node:readline';

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'noise', version: '1' },
  }),
  'tools/list': () => ({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }),
};
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (answers[method])
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: answers[method](params) })}\n`);
});
const notice = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'noise' } };
setInterval(() => {
  process.stdout.write(`${JSON.stringify(notice)}\n`);
  process.stderr.write(`${'noise '.repeat(20)}\n`);
}, 1);
