import { setImmediate as nextTurn } from 'node:timers/promises';
import { shieldingFetch } from './exact-answers.js';

describe('shieldingFetch: events of an MCP server', () => {
  const notice = `event: message\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n`;
  const streamed = (chunks: readonly Uint8Array[]) =>
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
    })('http://x');

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

  it('passes on the same bytes, independent of how the chunks are cut', async () => {
    const text = `${notice}: a comment\r\n\r\n${notice.replaceAll('\n', '\r\n')}data: é\rdata: 2\r\r`.repeat(30);
    const whole = Buffer.from(text);
    const cuts = Array.from({ length: Math.ceil(whole.length / 997) }, (_, at) =>
      whole.subarray(at * 997, (at + 1) * 997),
    );
    const { body } = await streamed(cuts);
    expect(await new Response(body).text()).toBe(text);
  });
});
