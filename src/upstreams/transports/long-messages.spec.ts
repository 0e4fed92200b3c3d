import { CredentialRemover } from '../../platform/secrets/credential-remover.js';
import { shielded } from '../../protocol/exact-integers.js';
import { LongMessages } from './long-messages.js';

describe('LongMessages', () => {
  const values = `[${'1,'.repeat(50_000)}12345678901234567]`;
  const list = [...Array<number>(50_000).fill(1), 12345678901234567n];
  const read = (text: string) => JSON.parse(text);

  it.each([
    ['a result', `{"jsonrpc":"2.0","id":7,"result":{"a":${values}}}`, { id: 7, result: { a: list } }],
    [
      'an error',
      `{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m","data":${values}}}`,
      { id: 'x', error: { code: 1, message: 'm', data: list } },
    ],
    [
      'a request',
      `{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":${values}}}`,
      { method: 'm', params: { a: list } },
    ],
    ['a notification', `{"jsonrpc":"2.0","method":"m","params":{"a":${values}}}`, { method: 'm', params: { a: list } }],
  ])('exchanges %s once', async (_, text, message) => {
    const long = new LongMessages();
    const short = await long.shorten(text);
    expect(short.length).toBeLessThan(200);
    expect(long.original(read(short))).toMatchObject(message);
    expect(long.original(read(short))).not.toMatchObject(message);
  });

  it('ends the request of an answer above the limits', async () => {
    const long = new LongMessages();
    const short = await long.shorten(`{"jsonrpc":"2.0","id":7,"result":{"a":[${'1,'.repeat(1_000_000)}1]}}`);
    const message = 'the answer of the MCP server is invalid: more than 1000000 values';
    expect(long.original(read(short))).toMatchObject({
      id: 7,
      error: { message, data: { code: 'remote_invalid_response' } },
    });
  });

  it.each([
    ['a batch', `[{"jsonrpc":"2.0","id":7,"result":{"a":${values}}}]`],
    ['a text that names no request', `{"result":[${values}}`],
    ['a message of another version', `{"jsonrpc":"1.0","method":"m","params":${values}}`],
    ['an error without an id', `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m","data":${values}}}`],
    ['an id that is no integer', `{"jsonrpc":"2.0","id":1.5,"result":{"a":${values}}}`],
    ['an id that is an object', `{"jsonrpc":"2.0","id":{},"result":{"a":${values}}}`],
  ])('gives the SDK no message for %s', async (_, text) => {
    expect(await new LongMessages().shorten(text)).toBe('{}');
  });

  it('keeps a limited number of messages', async () => {
    const long = new LongMessages();
    const shorts: string[] = [];
    for (let id = 0; id < 17; id++)
      shorts.push(await long.shorten(`{"jsonrpc":"2.0","id":${id},"result":{"a":${values}}}`));
    const [first, ...rest] = shorts as [string, ...string[]];
    expect(long.original(read(first))).toMatchObject({ id: 0, error: { data: { code: 'remote_invalid_response' } } });
    for (const short of rest) expect(long.original(read(short))).toMatchObject({ result: { a: list } });
  });

  it('exchanges parsed messages, with exact integers and without credentials, and pauses meanwhile', () => {
    const long = new LongMessages(new CredentialRemover(['secret-4711']));
    const result = (id: number) => ({ jsonrpc: '2.0', id, result: { a: ['secret-4711', ...Array(20_000).fill(1)] } });
    const batch = [...Array.from({ length: 20 }, (_, id) => result(id)), 'no message'];
    let pauses = 0;
    const work = long.shortening(read(shielded(JSON.stringify(batch).replace(',1,', ',12345678901234567,'))));
    let step = work.next();
    for (; !step.done; step = work.next()) pauses++;
    expect(pauses).toBeGreaterThanOrEqual(40 * 2);
    const shorts = step.value as any[];
    expect(JSON.stringify(shorts).length).toBeLessThan(5_000);
    expect(shorts[20]).toBe('no message');
    const [first, second] = shorts.map((short) => long.original(short)) as any[];
    expect(first.result.a.slice(0, 3)).toEqual([expect.not.stringContaining('4711'), 12345678901234567n, 1]);
    expect(second).toMatchObject({ id: 1, result: { a: expect.arrayContaining([1]) } });
  });

  it('leaves other messages as they are', () => {
    const message = { jsonrpc: '2.0', id: 1, result: { 'dev.rialto/instead': 'made up' } } as const;
    expect(new LongMessages().original(message)).toBe(message);
  });
});
