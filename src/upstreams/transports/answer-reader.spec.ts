import { isJSONRPCResponse } from '@modelcontextprotocol/client';
import { RialtoError } from '../../kernel/errors.js';
import { AnswerReader } from './answer-reader.js';

describe('AnswerReader', () => {
  const reading = (...sentIds: (number | string)[]) => {
    const received: any[] = [];
    const failed: RialtoError[] = [];
    const reader = new AnswerReader(
      (message) => received.push(message),
      (error) => failed.push(error),
    );
    for (const id of sentIds) reader.sends({ jsonrpc: '2.0', id, method: 'tools/call' });
    return { reader, received, failed };
  };
  const readAll = (reader: AnswerReader) => new Promise<void>((done) => reader.afterOthers(done));
  const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
  const result = (id: number, value: string): string => `{"jsonrpc":"2.0","id":${id},"result":{"a":${value}}}`;

  it.each([
    ['80 nested lists', nested(80)],
    ['more than 100,000 values', `[${'1,'.repeat(120_000)}1]`],
    ['an object of many members', `{${Array.from({ length: 30_000 }, (_, n) => `"m${n}":1`).join()}}`],
  ])('accepts an answer within the limits of an answer over HTTP: %s (C32)', async (_, value) => {
    const { reader, received } = reading(1, 2);
    reader.readText(result(1, value));
    await readAll(reader);
    expect(received).toEqual([{ jsonrpc: '2.0', id: 1, result: { a: JSON.parse(value) } }]);
  });

  it('reads texts in their order, also after a long one', async () => {
    const { reader, received } = reading(1, 2, 3);
    reader.readText(result(1, `[${'1,'.repeat(120_000)}1]`));
    reader.readText(result(2, '1'));
    expect([received, reader.isReading]).toEqual([[], true]);
    await readAll(reader);
    await new Promise(setImmediate);
    reader.readText(result(3, '1'));
    expect([received.map(({ id }) => id as number), reader.isReading]).toEqual([[1, 2, 3], false]);
  });

  it.each([
    ['cannot be read', '{"jsonrpc":"2.0","result":{"a":[,', ']}}'],
    ['names no request', '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x","data":[', ']}}'],
  ])('ends no request that was sent while a long answer was parsed that %s', async (_, before, after) => {
    const list = Array(60_000).fill(1).join();
    const { reader, received } = reading(1);
    reader.readText(before + list + after);
    reader.sends({ jsonrpc: '2.0', id: 2, method: 'tools/call' });
    await readAll(reader);
    expect(received).toMatchObject([{ id: 1, error: {} }]);
    reader.readText(before + list + after);
    await readAll(reader);
    expect(received).toMatchObject([{ id: 1 }, { id: 2, error: {} }]);
  });

  it('reads on after a handler that throws', async () => {
    const received: unknown[] = [];
    const failed: unknown[] = [];
    const reader = new AnswerReader(
      (message) => {
        if ((message as { id: unknown }).id === 1) throw new Error('from a handler');
        received.push(message);
      },
      (error) => failed.push(error),
    );
    reader.readText(result(1, `[${'1,'.repeat(120_000)}1]`));
    reader.readText(result(2, '1'));
    await readAll(reader);
    expect([received, failed]).toMatchObject([[{ id: 2 }], [{ code: 'internal' }]]);
  });

  it.each([
    ['values', `[${'1,'.repeat(1_000_000)}1]`, 'more than 1000000 values'],
    ['members', `{${'"a":1,'.repeat(100_000)}"a":1}`, 'more than 100000 members in objects of 1000 or more'],
  ])('ends the request of an answer with too many %s', async (_, value, reason) => {
    const { reader, received } = reading(1, 2);
    reader.readText(result(1, value));
    await readAll(reader);
    expect(received).toMatchObject([
      { id: 1, error: { message: `the answer of the MCP server is invalid: ${reason}` } },
    ]);
  });

  it.each<[string, string]>([
    ['a malformed number', result(2, 'NaN')],
    ['a truncated text', '{"jsonrpc":"2.0","id":2,"result":{"a":'],
    ['too deep nesting', result(2, nested(5_000))],
    ['a number out of range', result(2, '1e999')],
    ['its id first', '{"id": 2, "result": {"a": NaN}}'],
    ['its id last', '{"result":{"id":1,"a":NaN},"jsonrpc":"2.0","id":2}'],
    ['its version last', '{"result":{"id":1,"a":NaN}, "id" : 2 , "jsonrpc" : "2.0"}'],
    ['no version', '{"id":2,"result":{}}'],
    ['an odd version', '{"jsonrpc":2.0,"id":2,"result":{}}'],
    ['a result that is a text', '{"jsonrpc":"2.0","id":2,"result":"ok"}'],
    ['no result', '{"jsonrpc":"2.0","id":2}'],
    ['both', '{"jsonrpc":"2.0","id":2,"result":{},"error":{"code":1,"message":"x"}}'],
    ['an error without a code', '{"jsonrpc":"2.0","id":2,"error":{"message":"x"}}'],
  ])('ends the request of an invalid answer at once: %s (C32)', (_, text) => {
    const { reader, received, failed } = reading(1, 2);
    reader.readText(text);
    expect(received).toMatchObject([{ id: 2, error: { message: expect.stringContaining('is invalid: ') } }]);
    expect(isJSONRPCResponse(received[0])).toBe(true);
    expect([received[0].error.data instanceof RialtoError, received[0].error.data.code]).toEqual([
      true,
      'remote_invalid_response',
    ]);
    expect(failed).toEqual([]);
    reader.readText(result(1, '1'));
    expect(received[1]).toEqual({ jsonrpc: '2.0', id: 1, result: { a: 1 } });
  });

  it('ends the only pending request for an invalid answer without an id, and none of several (C32)', () => {
    const text = '{"result":{"a":NaN},"jsonrpc":"2.0"';
    const one = reading('only');
    one.reader.readText(text);
    expect(one.received).toMatchObject([{ id: 'only', error: {} }]);
    const two = reading(1, 2);
    two.reader.readText(text);
    expect([two.received, two.failed.length]).toEqual([[], 1]);
  });

  it('ignores texts that are not answers to its requests', () => {
    const { reader, received, failed } = reading(1);
    for (const text of ['', '  ', 'Loading model…', '[1,2', '{"level":"info","msg":"up"', '7', '"x"', '[]'])
      reader.readText(text);
    reader.readText('{"jsonrpc":"2.0","id":9,"result":"late"}');
    expect([received, failed.length]).toEqual([[], 6]);
    reader.readText(result(1, '1'));
    expect(received).toHaveLength(1);
  });

  it('reads batches, notifications, requests, and errors of requests that the server could not parse', () => {
    const { reader, received } = reading(1, 2, 3);
    reader.readText(`[${result(1, '1')},${result(2, '2')}]`);
    reader.readText('{"jsonrpc":"2.0","method":"notifications/progress","params":{}}');
    reader.readText('{"jsonrpc":"2.0","id":1,"method":"ping"}');
    reader.readText('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}');
    expect(received.map(({ id, method }) => id ?? method)).toEqual([1, 2, 'notifications/progress', 1, 3]);
    expect(received.at(-1).error).toEqual({ code: -32_700, message: 'Parse error' });
  });

  it('accepts a byte order mark at the beginning (C05)', () => {
    const { reader, received } = reading(1);
    reader.readText(`\ufeff${result(1, '"\ufeff"')}`);
    expect(received).toEqual([{ jsonrpc: '2.0', id: 1, result: { a: '\ufeff' } }]);
  });

  it('ends the request of a too long answer, and reads what follows it (C31)', () => {
    const { reader, received, failed } = reading(1, 2, 3, 4);
    reader.tooLong({ head: '{"jsonrpc":"2.0","id":2,"result":{"content":"xxx' });
    expect(received).toMatchObject([
      { id: 2, error: { message: expect.stringContaining('more than 10485760 bytes') } },
    ]);
    reader.tooLong({ head: '{"jsonrpc":"2.0","id":2,"result":{"content":"xxx', tail: 'xxx"}}' });
    reader.tooLong({ head: '{"result":{"id":1,"content":"xxx' });
    reader.tooLong({ head: '{"result":{"id":1,"content":"xxx', tail: 'xxx"},"jsonrpc":"2.0","id":3}' });
    expect(received.map(({ id }) => id)).toEqual([2, 3]);
    reader.tooLong({ head: 'xxx' });
    reader.tooLong({ head: 'xxx', tail: `xxx${result(1, '1')}` });
    expect(received).toMatchObject([{ id: 2 }, { id: 3 }, { id: 1, result: {} }, { id: 4, error: {} }]);
    expect(failed).toEqual([]);
  });

  it('ends the request that is left when all others are answered after a too long answer that names none', () => {
    const { reader, received, failed } = reading(1, 2, 3);
    reader.tooLong({ head: 'xxx' });
    reader.sends({ jsonrpc: '2.0', id: 4, method: 'tools/list' });
    reader.readText(result(2, '1'));
    reader.readText(result(4, '1'));
    expect(received.map(({ id }) => id)).toEqual([2, 4]);
    reader.readText('{"jsonrpc":"2.0","id":3,"result":"text"}');
    expect(received.slice(2)).toMatchObject([
      { id: 3, error: { message: expect.stringContaining('"result" is not an object') } },
      { id: 1, error: { message: expect.stringContaining('more than 10485760 bytes') } },
    ]);
    expect(failed).toEqual([]);
  });

  it('ends no other request when the too long answer is found to be of a canceled or a named one', () => {
    const canceled = reading(1, 2);
    canceled.reader.tooLong({ head: 'xxx' });
    canceled.reader.sends({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
    expect(canceled.received).toEqual([]);
    const named = reading(1, 2);
    named.reader.tooLong({ head: 'xxx' });
    named.reader.tooLong({ head: 'xxx', tail: 'xxx,"id":1}' });
    expect(named.received).toMatchObject([{ id: 1, error: {} }]);
  });

  it('does not match answers to a canceled request', () => {
    const { reader, received, failed } = reading(1);
    const params = { requestId: 1 };
    reader.sends({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
    reader.readText(result(1, 'NaN'));
    expect([received, failed.length]).toEqual([[], 1]);
  });
});
