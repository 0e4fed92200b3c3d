import { isJSONRPCResponse } from '@modelcontextprotocol/client';
import { RialtoError } from '../../kernel/errors.js';
import { AnswerReader } from './answer-reader.js';

describe('what a server answers in texts', () => {
  const reading = (...asked: (number | string)[]) => {
    const heard: any[] = [];
    const failed: RialtoError[] = [];
    const reader = new AnswerReader(
      (message) => heard.push(message),
      (error) => failed.push(error),
    );
    for (const id of asked) reader.sends({ jsonrpc: '2.0', id, method: 'tools/call' });
    return { reader, heard, failed };
  };
  const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
  const result = (id: number, value: string): string => `{"jsonrpc":"2.0","id":${id},"result":{"a":${value}}}`;

  it.each([
    ['80 nested lists', nested(80)],
    ['more than 100,000 values', `[${'1,'.repeat(120_000)}1]`],
    ['an object of many members', `{${Array.from({ length: 30_000 }, (_, n) => `"m${n}":1`).join()}}`],
  ])('is taken within the limits of an answer over HTTP: %s (C32)', (_, value) => {
    const { reader, heard } = reading(1, 2);
    reader.read(result(1, value));
    expect(heard).toEqual([{ jsonrpc: '2.0', id: 1, result: { a: JSON.parse(value) } }]);
  });

  it.each<[string, string]>([
    ['a number that is none', result(2, 'NaN')],
    ['a cut text', '{"jsonrpc":"2.0","id":2,"result":{"a":'],
    ['nesting without end', result(2, nested(5_000))],
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
  ])('ends its own request at once where it cannot be taken: %s (C32)', (_, text) => {
    const { reader, heard, failed } = reading(1, 2);
    reader.read(text);
    expect(heard).toMatchObject([{ id: 2, error: { message: expect.stringContaining('cannot be taken: ') } }]);
    expect(isJSONRPCResponse(heard[0])).toBe(true);
    expect([heard[0].error.data instanceof RialtoError, heard[0].error.data.code]).toEqual([
      true,
      'remote_invalid_response',
    ]);
    expect(failed).toEqual([]);
    reader.read(result(1, '1'));
    expect(heard[1]).toEqual({ jsonrpc: '2.0', id: 1, result: { a: 1 } });
  });

  it('ends the one request that waits where it names none, and none of several (C32)', () => {
    const text = '{"result":{"a":NaN},"jsonrpc":"2.0"';
    const one = reading('only');
    one.reader.read(text);
    expect(one.heard).toMatchObject([{ id: 'only', error: {} }]);
    const two = reading(1, 2);
    two.reader.read(text);
    expect([two.heard, two.failed.length]).toEqual([[], 1]);
  });

  it('is passed over where it belongs elsewhere', () => {
    const { reader, heard, failed } = reading(1);
    for (const text of ['', '  ', 'Loading model…', '[1,2', '{"level":"info","msg":"up"', '7', '"x"', '[]'])
      reader.read(text);
    reader.read('{"jsonrpc":"2.0","id":9,"result":"late"}');
    expect([heard, failed.length]).toEqual([[], 6]);
    reader.read(result(1, '1'));
    expect(heard).toHaveLength(1);
  });

  it('is a batch, a notice, a question, or an error of a request that could not be read', () => {
    const { reader, heard } = reading(1, 2, 3);
    reader.read(`[${result(1, '1')},${result(2, '2')}]`);
    reader.read('{"jsonrpc":"2.0","method":"notifications/progress","params":{}}');
    reader.read('{"jsonrpc":"2.0","id":1,"method":"ping"}');
    reader.read('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}');
    expect(heard.map(({ id, method }) => id ?? method)).toEqual([1, 2, 'notifications/progress', 1, 3]);
    expect(heard.at(-1).error).toEqual({ code: -32_700, message: 'Parse error' });
  });

  it('may begin with a byte order mark (C05)', () => {
    const { reader, heard } = reading(1);
    reader.read(`\ufeff${result(1, '"\ufeff"')}`);
    expect(heard).toEqual([{ jsonrpc: '2.0', id: 1, result: { a: '\ufeff' } }]);
  });

  it('ends its own request when it is too long, and what comes behind it is read (C31)', () => {
    const { reader, heard, failed } = reading(1, 2, 3, 4);
    reader.tooLong({ head: '{"jsonrpc":"2.0","id":2,"result":{"content":"xxx' });
    expect(heard).toMatchObject([{ id: 2, error: { message: expect.stringContaining('more than 10485760 bytes') } }]);
    reader.tooLong({ head: '{"jsonrpc":"2.0","id":2,"result":{"content":"xxx', tail: 'xxx"}}' });
    reader.tooLong({ head: '{"result":{"id":1,"content":"xxx' });
    reader.tooLong({ head: '{"result":{"id":1,"content":"xxx', tail: 'xxx"},"jsonrpc":"2.0","id":3}' });
    expect(heard.map(({ id }) => id)).toEqual([2, 3]);
    reader.tooLong({ head: 'xxx' });
    reader.tooLong({ head: 'xxx', tail: `xxx${result(1, '1')}` });
    expect(heard.map(({ id }) => id)).toEqual([2, 3, 1]);
    expect(failed).toEqual([]);
  });

  it('is not waited for by a request that was given up', () => {
    const { reader, heard, failed } = reading(1);
    const params = { requestId: 1 };
    reader.sends({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
    reader.read(result(1, 'NaN'));
    expect([heard, failed.length]).toEqual([[], 1]);
  });
});
