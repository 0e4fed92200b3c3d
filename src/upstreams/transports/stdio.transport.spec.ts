import { tmpdir } from 'node:os';
import type { JSONRPCMessage } from '@modelcontextprotocol/client';
import { StdioTransport } from './stdio.transport.js';

/** Program that answers each line with the number of chunks in which its input arrived. */
const program = `
  let pieces = 0, rest = '';
  process.stdin.on('data', (piece) => {
    pieces++;
    const lines = (rest + piece).split('\\n');
    rest = lines.pop();
    const answer = (line) => ({ jsonrpc: '2.0', id: JSON.parse(line).id, result: { pieces } });
    for (const line of lines) console.log(JSON.stringify(answer(line)));
  });`;

/** Program that writes notifications endlessly, as fast as they are read. */
const endless = `
  const notices = '{"jsonrpc":"2.0","method":"notifications/x"}\\n'.repeat(10_000);
  const more = () => {
    while (process.stdout.write(notices));
    process.stdout.once('drain', more);
  };
  more();
  process.stdin.resume();`;

function transport(received: (message: JSONRPCMessage) => void, script = program): StdioTransport {
  const command = { command: process.execPath, args: ['-e', script], env: {}, cache: tmpdir() };
  const connection = new StdioTransport(
    command,
    { wordsFor: async () => [], handOver: () => undefined },
    () => undefined,
  );
  connection.onmessage = received;
  return connection;
}

const ping = (id: number): JSONRPCMessage => ({ jsonrpc: '2.0', id, method: 'ping' });

describe('StdioTransport', () => {
  it('sends the messages of one turn of the event loop in one write, in order', async () => {
    const received: JSONRPCMessage[] = [];
    const connection = transport((message) => received.push(message));
    await connection.start();
    await Promise.all([1, 2, 3].map((id) => connection.send(ping(id))));
    await connection.close();
    expect(received).toEqual([1, 2, 3].map((id) => ({ jsonrpc: '2.0', id, result: { pieces: 1 } })));
  });

  it('sends pending messages before it closes', async () => {
    const received: JSONRPCMessage[] = [];
    const connection = transport((message) => received.push(message));
    await connection.start();
    void connection.send(ping(1));
    await connection.close();
    expect(received).toHaveLength(1);
  });

  it('refuses messages after the program ended', async () => {
    const connection = transport(() => undefined);
    await connection.start();
    await connection.close();
    await expect(connection.send(ping(1))).rejects.toThrow('the program of the MCP server ended');
  });

  it('reads at most two chunks of an endless output in each turn of the event loop', async () => {
    const turns: number[] = [];
    let [inTurn, turn] = [0, undefined as NodeJS.Immediate | undefined];
    await new Promise<void>((resolve, reject) => {
      const connection = transport(() => {
        inTurn += 1;
        turn ??= setImmediate(() => {
          turns.push(inTurn);
          [inTurn, turn] = [0, undefined];
          if (turns.length === 200) void connection.close().then(resolve, reject);
        });
      }, endless);
      connection.start().catch(reject);
    });
    // A chunk has at most 64 KiB and a notification has 45 bytes. The end of one may come with the next chunk, and so
    // may the bytes that were read while the stream was paused.
    expect(Math.max(...turns)).toBeLessThanOrEqual(Math.ceil((2 * 65_536) / 45));
  });
});
