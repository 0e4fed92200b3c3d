import { tmpdir } from 'node:os';
import type { JSONRPCMessage } from '@modelcontextprotocol/client';
import { StdioTransport } from './stdio.transport.js';

/** Answers each line, and says in how many pieces its input came. */
const program = `
  let pieces = 0, rest = '';
  process.stdin.on('data', (piece) => {
    pieces++;
    const lines = (rest + piece).split('\\n');
    rest = lines.pop();
    for (const line of lines) console.log(JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(line).id, result: { pieces } }));
  });`;

function transport(heard: (message: JSONRPCMessage) => void): StdioTransport {
  const command = { command: process.execPath, args: ['-e', program], env: {}, cache: tmpdir() };
  const line = new StdioTransport(command, { wordsFor: async () => [], handOver: () => undefined }, () => undefined);
  line.onmessage = heard;
  return line;
}

const asking = (id: number): JSONRPCMessage => ({ jsonrpc: '2.0', id, method: 'ping' });

describe('StdioTransport', () => {
  it('sends what is said in one turn in one write, in order', async () => {
    const heard: JSONRPCMessage[] = [];
    const line = transport((message) => heard.push(message));
    await line.start();
    await Promise.all([1, 2, 3].map((id) => line.send(asking(id))));
    await line.close();
    expect(heard).toEqual([1, 2, 3].map((id) => ({ jsonrpc: '2.0', id, result: { pieces: 1 } })));
  });

  it('sends before it closes what was said just before', async () => {
    const heard: JSONRPCMessage[] = [];
    const line = transport((message) => heard.push(message));
    await line.start();
    void line.send(asking(1));
    await line.close();
    expect(heard).toHaveLength(1);
  });

  it('refuses what is said after the program ended', async () => {
    const line = transport(() => undefined);
    await line.start();
    await line.close();
    await expect(line.send(asking(1))).rejects.toThrow('the program of the MCP server ended');
  });
});
