import { setImmediate as nextTurn } from 'node:timers/promises';
import { shieldingFetch } from './exact-answers.js';
import { LongMessages } from './long-messages.js';

describe('shieldingFetch: events of an MCP server', () => {
  const notice = `event: message\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n`;
  const streamed = (chunks: readonly Uint8Array[], messages = new LongMessages()) =>
    shieldingFetch(() => {
      const left = [...chunks];
      const body = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          const chunk = left.shift();
          if (chunk) controller.enqueue(chunk);
          else controller.close();
        },
      });
      return Promise.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream' } }));
    }, messages)('http://x');

  const long = `{"jsonrpc":"2.0","id":1,"result":{"a":["${'x'.repeat(70_000)}"]}}`;
  const textOf = async (...chunks: string[]) =>
    new Response((await streamed(chunks.map((chunk) => Buffer.from(chunk)))).body).text();

  it('replaces only long messages, also when a line end is cut', async () => {
    const short = /^(?:event: message\n)?data:\{"jsonrpc":"2.0","id":1,"result":\{"[^"]+":"[^"]+"\}\}\n\n$/;
    expect(await textOf(`event: message\ndata: ${long}\n\n`)).toMatch(short);
    expect(await textOf(`data: ${long}\n\n`)).toMatch(short);
    for (const other of [`event: stats\ndata: ${long}\n\n`, `data: [log] ${'x'.repeat(70_000)}\n\n`.replace('[', '(')])
      expect(await textOf(other)).toBe(other);
    const [begin, end] = [long.slice(0, 30), long.slice(30)];
    const cut = await textOf(`data: ${begin}\r`, `\ndata: ${end}\r`, '\n\r\n');
    expect(cut.startsWith('data:{"jsonrpc":"2.0","id":1,"result":{')).toBe(true);
    const withId = await textOf(`data: ${long}\r`, '\nid: 7\r\n\r\n');
    expect(withId).toMatch(/id: 7\ndata:\{.*\}\n\n$/);
  });

  it('keeps the stream for a long text that is not a message', async () => {
    const text = await textOf(`data: [1,${'1,'.repeat(40_000)}1]\n\ndata: ${long}\n\n`);
    expect(text).toMatch(/^data:\{\}\n\ndata:\{"jsonrpc"/);
  });

  describe('an event above the limit', () => {
    const tail = `\n\n${notice}`;
    const huge = 'x'.repeat(1_000_000);
    const inPieces = (begin: string, end: string) => [begin, ...Array<string>(11).fill(huge), end];

    it.each([
      ['an id at its beginning', 'data: {"jsonrpc":"2.0","id":7,"result":{"a":"', `"}}${tail}`],
      ['an id at its end', 'data: {"result":{"a":"', `"},"jsonrpc":"2.0","id":7}${tail}`],
      ['several lines', 'data: {"jsonrpc":"2.0",\ndata:"id":7,"result":{"a":"', `"\ndata:}}${tail}`],
    ])('ends its request, with %s, and keeps the stream', async (_, begin, end) => {
      const long = new LongMessages();
      const pieces = inPieces(begin, end).map((piece) => Buffer.from(piece));
      const text = await new Response((await streamed(pieces, long)).body).text();
      const [, short] = /^data:(.*)\n\n/.exec(text)!;
      const error = { data: { code: 'remote_invalid_response' }, message: expect.stringContaining('10485760 bytes') };
      expect(long.original(JSON.parse(short!))).toMatchObject({ id: 7, error });
      expect(text.endsWith(`\n\n${notice}`)).toBe(true);
    });

    it('is dropped when it names no request or is no message', async () => {
      expect(await textOf(...inPieces('data: {"a":"', tail))).toBe(`data:{}${tail}`);
      expect(await textOf(...inPieces('event: stats\ndata: (', tail))).toBe(`event: stats${tail}`);
      const lines = `data:${'x'.repeat(100_000)}\n`.repeat(10);
      expect(await textOf(...Array<string>(11).fill(lines), tail.slice(1))).toBe(tail.slice(1));
      expect(await textOf('data: {\n', ...Array<string>(22).fill('data\n'.repeat(100_000)), tail.slice(1))).toBe(
        `data:{}${tail}`,
      );
    });

    it('takes a bounded amount of memory', async () => {
      const allocate = jest.spyOn(Buffer, 'allocUnsafeSlow');
      await textOf('data: {', ...Array<string>(40).fill(huge));
      expect(Math.max(...allocate.mock.calls.map(([size]) => size))).toBeLessThanOrEqual(21_000_000);
      allocate.mockRestore();
    });
  });

  it('shortens a long message of very many lines, also after an empty line', async () => {
    const lines = `data:\ndata: {"jsonrpc":"2.0","id":1,"result":{"a":[1\n${'data:,1\n'.repeat(100_000)}data:]}}\n\n`;
    expect(await textOf(lines)).toMatch(/^data:\{"jsonrpc":"2.0","id":1,"result":\{"[^"]+":"[^"]+"\}\}\n\n$/);
  });

  it('yields to other work between small batches of a fast stream of events', async () => {
    const { body } = await streamed(Array.from({ length: 20 }, () => Buffer.from(notice.repeat(200))));
    let [events, isOver] = [0, false];
    const read = (async (): Promise<void> => {
      const decoder = new TextDecoder();
      for await (const piece of body!) events += decoder.decode(piece).split('data:').length - 1;
      isOver = true;
    })();
    const inOneTurn: number[] = [];
    for (let before = 0; !isOver; before = events) {
      await nextTurn();
      inOneTurn.push(events - before);
    }
    await read;
    expect(events).toBe(4_000);
    expect(Math.max(...inOneTurn)).toBeLessThanOrEqual(100);
  });

  it('passes on the same lines, independent of how the chunks are cut', async () => {
    const text = `${notice}: a comment\r\n\r\n${notice.replaceAll('\n', '\r\n')}data: é\rdata: 2\r\r`.repeat(30);
    const whole = Buffer.from(text);
    const cuts = Array.from({ length: Math.ceil(whole.length / 997) }, (_, at) =>
      whole.subarray(at * 997, (at + 1) * 997),
    );
    const { body } = await streamed(cuts);
    expect(await new Response(body).text()).toBe(text.replace(/\r\n?/g, '\n'));
  });

  it.each([
    ['in the data', 'data: {"a":"b\rc"}\n\n', 'c"}\ndata: {"a":"b\n\n'],
    ['before data that is dropped', `event: x\rdata: ${'y'.repeat(10_500_000)}\n\n`, 'event: x\n\n'],
  ])('ends an event with a carriage return %s, and keeps the next one', async (_, event, passed) => {
    expect(await textOf(event, notice)).toBe(passed + notice);
  });
});

it('shieldingFetch refuses a JSON answer of very many tiny chunks', async () => {
  const answer = (chunks: number, size: number) => {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        for (let index = 0; index < chunks; index++) controller.enqueue(Buffer.from('1'.repeat(size)));
        controller.close();
      },
    });
    const headers = { 'content-type': 'application/json' };
    return shieldingFetch(() => Promise.resolve(new Response(body, { headers })), new LongMessages())('http://x');
  };
  await expect((await answer(10_001, 1)).json()).rejects.toMatchObject({ code: 'remote_invalid_response' });
  expect(await (await answer(10, 1)).json()).toBe(1_111_111_111);
});
