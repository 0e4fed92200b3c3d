import { checkedFetch } from './checked-fetch.js';

const endpoint = { url: 'http://agent.example/rpc', binding: 'JSONRPC' as const, version: '1.0' as const };
const rules = {
  endpoint,
  maxReplyBytes: 1_000_000,
  expectsReply: false,
  maxEventBytes: 1_000_000,
  maxEvents: 9,
  idleMs: 9_000,
};

/** Answers with `size` bytes in chunks of one byte. */
function inTinyChunks(size: number, status = 200): typeof fetch {
  const answer = '{"jsonrpc":"2.0","id":1,"result":{}}'.padEnd(size);
  const chunks = async function* () {
    for (const one of Buffer.from(answer)) yield Buffer.from([one]);
  };
  return async () =>
    new Response(ReadableStream.from(chunks()), { status, headers: { 'content-type': 'application/json' } });
}
const ask = (send: typeof fetch) =>
  checkedFetch(send, rules)(endpoint.url, { method: 'POST', body: '{"jsonrpc":"2.0","id":1,"method":"GetTask"}' });

describe('checkedFetch', () => {
  it('accepts 10,000 chunks of one byte, and refuses more', async () => {
    expect(await (await ask(inTinyChunks(10_000))).json()).toEqual({ jsonrpc: '2.0', id: 1, result: {} });
    await expect(ask(inTinyChunks(10_001))).rejects.toMatchObject({
      code: 'remote_invalid_response',
      message: expect.stringContaining('too many tiny chunks'),
    });
  });

  it('reads no more of an error in tiny chunks, and reports its status', async () => {
    await expect(ask(inTinyChunks(900_000, 500))).rejects.toMatchObject({
      code: 'remote_transport',
      data: { httpStatus: 500 },
    });
  });

  it.each(['application/json', 'text/event-stream'])('writes a long answer in pieces: %s', async (type) => {
    const [long, huge] = [Array.from({ length: 90_000 }, (_, index) => `t${index}`), '12345678901234567890'];
    const status = { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' }, metadata: { long } };
    const answer = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { statusUpdate: status } });
    const exact = answer.replace('"long":', `"huge":${huge},"long":`);
    const body = type === 'application/json' ? exact : `data: ${exact}\n\n`;
    const written = jest.spyOn(JSON, 'stringify');
    const response = await ask(() => Promise.resolve(new Response(body, { headers: { 'content-type': type } })));
    const read = await response.text();
    const lengths = written.mock.results.map(({ value }) => (value as string).length);
    written.mockRestore();
    // An integer that the SDK would round is in a text of its own.
    expect(read).toMatch(new RegExp(`"huge":"[^"]+:${huge}"`));
    expect(read).toContain('"t89999"');
    expect(Math.max(...lengths)).toBeLessThan(100_000);
  });
});
