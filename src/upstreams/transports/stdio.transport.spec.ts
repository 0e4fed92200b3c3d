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

/** Says the same for ever, as fast as it is read. */
const endless = `
  const notices = '{"jsonrpc":"2.0","method":"notifications/x"}\\n'.repeat(10_000);
  const more = () => {
    while (process.stdout.write(notices));
    process.stdout.once('drain', more);
  };
  more();
  process.stdin.resume();`;

function transport(heard: (message: JSONRPCMessage) => void, script = program): StdioTransport {
  const command = { command: process.execPath, args: ['-e', script], env: {}, cache: tmpdir() };
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

  it('reads a program that writes without end two pieces at most in each turn of the event loop', async () => {
    const turns: number[] = [];
    let [inTurn, turn] = [0, undefined as NodeJS.Immediate | undefined];
    await new Promise<void>((resolve, reject) => {
      const line = transport(() => {
        inTurn += 1;
        turn ??= setImmediate(() => {
          turns.push(inTurn);
          [inTurn, turn] = [0, undefined];
          if (turns.length === 200) void line.close().then(resolve, reject);
        });
      }, endless);
      line.start().catch(reject);
    });
    // A piece has at most 64 KiB and a notice 45 bytes, of which the end may come with the next piece, as what was read while paused does.
    expect(Math.max(...turns)).toBeLessThanOrEqual(Math.ceil((2 * 65_536) / 45));
  });
});
