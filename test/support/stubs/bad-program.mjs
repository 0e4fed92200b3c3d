// An MCP server on standard input and output. It lists its tool correctly, and each call of the tool misbehaves in the
// way that the first argument names.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const write = (text) => process.stdout.write(text);
const send = (message) => write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
/** Writes the same text endlessly, as fast as the client reads it. */
const endless = (stream, text) => {
  while (stream.write(text));
  stream.once('drain', () => endless(stream, text));
};

const misdeeds = {
  garbage: () => {
    for (let line = 0; line < 2_000; line++) write(`Loading… {"jsonrpc":"2.0","id": [${line}\n\u0000\u0001\n`);
  },
  'wrong ids': (id) => {
    for (const other of [id + 1_000_000, -1, null, 'x', { id }]) send({ id: other, result: { content: [] } });
  },
  'endless line': () => endless(process.stdout, 'x'.repeat(65_536)),
  'endless lines': () => endless(process.stdout, `${'x'.repeat(200)}\n`.repeat(300)),
  'endless stderr': () => endless(process.stderr, 'x'.repeat(65_536)),
  'endless notifications': () =>
    endless(process.stdout, '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'.repeat(100)),
  exit: () => process.exit(3),
  'closed output': () => process.stdout.destroy(),
  silence: () => undefined,
  forks: () => {
    for (let child = 0; child < 20; child++)
      spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore' });
  },
  'busy loop': () => {
    for (;;);
  },
};

process.stdout.on('error', () => undefined);
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  const tools = [{ name: 'bad', inputSchema: { type: 'object' } }];
  const capabilities = { tools: { listChanged: true } };
  const serverInfo = { name: 'bad-program', version: '1' };
  if (method === 'initialize')
    return send({ id, result: { protocolVersion: params.protocolVersion, capabilities, serverInfo } });
  if (method === 'tools/list') return send({ id, result: { tools } });
  if (method === 'tools/call') return misdeeds[process.argv[2]](id);
  if (id !== undefined) send({ id, error: { code: -32601, message: 'Method not found' } });
});
process.stdin.on('close', () => process.exit(0));
