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

/** Program that ends when it has written two long answers: the first takes long to read. */
const lastAnswers = `
  const answer = (id, result) => JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n';
  const long = answer(1, { list: Array(900_000).fill(1) });
  process.stdin.once('data', () =>
    process.stdout.write(long + answer(2, { text: 'x'.repeat(100_000) }), () => process.kill(process.pid, 'SIGKILL')),
  );`;

/** Program that writes 20,000 short notifications at once, and ends. */
const manyLines = `
  const notice = (_, at) => JSON.stringify({ jsonrpc: '2.0', method: 'n', params: { at } }) + '\\n';
  process.stdout.write(Array.from({ length: 20_000 }, notice).join(''), () => process.exit());`;

/** Program that writes lines which are no messages, and ends. */
const invalidLines = `process.stdout.write('{}\\n'.repeat(50_000), () => process.exit());`;

/** Program that leaves behind a process of another group, which keeps the output open. */
const leftBehind = `
  const { spawn } = require('node:child_process');
  spawn('sleep', ['30'], { detached: true, stdio: ['ignore', 'inherit', 'inherit'] }).unref();
  process.exit();`;

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

  it('reads what a program wrote before it ended, and then closes', async () => {
    const seen: unknown[] = [];
    const connection = transport((message) => seen.push((message as { id: number }).id), lastAnswers);
    const closed = new Promise<void>((resolve) => {
      connection.onclose = () => {
        seen.push('closed');
        resolve();
      };
    });
    await connection.start();
    await Promise.all([1, 2].map((id) => connection.send(ping(id))));
    await closed;
    expect(seen).toEqual([1, 2, 'closed']);
  });

  it('closes when the program has exited, also when another process keeps its output open', async () => {
    const connection = transport(() => undefined, leftBehind);
    const closed = new Promise<void>((resolve) => (connection.onclose = resolve));
    await connection.start();
    await closed;
    await connection.close();
  });

  it('reads at most 60 lines in each turn of the event loop, in order, and all before it closes', async () => {
    const [perTurn, lines]: [number[], unknown[]] = [[], []];
    let [turn, inTurn, isOver] = [0, 0, false];
    const count = (): void => {
      if (inTurn > 0) perTurn.push(inTurn);
      [turn, inTurn] = [turn + 1, 0];
      if (!isOver) setImmediate(count);
    };
    const connection = transport((message) => {
      inTurn += 1;
      lines.push((message as unknown as { params: { at: number } }).params.at);
    }, manyLines);
    const closed = new Promise<void>((resolve) => (connection.onclose = resolve));
    await connection.start();
    setImmediate(count);
    await closed;
    isOver = true;
    expect(lines).toEqual(Array.from({ length: 20_000 }, (_, at) => at));
    // The event loop may read a chunk between two of the turns that are counted.
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(120);
  });

  it('reports a few of the invalid lines of a second', async () => {
    const connection = transport(() => undefined, invalidLines);
    let reports = 0;
    connection.onerror = () => (reports += 1);
    const started = performance.now();
    const closed = new Promise<void>((resolve) => (connection.onclose = resolve));
    await connection.start();
    await closed;
    const seconds = Math.floor((performance.now() - started) / 1_000) + 1;
    expect(reports).toBeGreaterThan(0);
    expect(reports).toBeLessThanOrEqual(10 * seconds);
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
