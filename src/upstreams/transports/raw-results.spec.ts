import { Client, isJSONRPCResponse, type JSONRPCMessage, type Transport } from '@modelcontextprotocol/client';
import { anyValue } from './any-value.js';
import { keepOrder } from '../connections/message-order.js';
import { keepRaw, rawOf, withHints } from './raw-results.js';

/** Connects a client of the 2026-07-28 revision to a server that answers each of its requests with the given result. */
async function connected(discover: object, result: unknown): Promise<Client> {
  const transport: Transport = {
    start: () => Promise.resolve(),
    close: () => Promise.resolve(transport.onclose?.()),
    send: (message) => {
      if (!('id' in message) || !('method' in message)) return Promise.resolve();
      const reply = message.method === 'server/discover' ? discover : result;
      const answer = { jsonrpc: '2.0', id: message.id, result: reply } as JSONRPCMessage;
      setImmediate(() => transport.onmessage?.(withHints(answer)));
      return Promise.resolve();
    },
  };
  const client = new Client({ name: 'x', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(transport);
  keepRaw(transport);
  keepOrder(transport, isJSONRPCResponse);
  return client;
}

describe('keepRaw: a result of the 2026-07-28 revision', () => {
  const discover = { supportedVersions: ['2026-07-28'], capabilities: { tools: {}, resources: {}, prompts: {} } };
  const ask = async (client: Client, method: string, params: object = {}): Promise<unknown> =>
    rawOf(await client.request({ method, params: params as never }, anyValue, { timeout: 1_000 }));

  it.each([
    {},
    { resultType: 'complete' },
    { resultType: 'complete', ttlMs: 1.5, cacheScope: 'global' },
    { resultType: 'complete', ttlMs: 0, cacheScope: 'private' },
  ])('arrives unchanged with any caching hints: %j (C56)', async (hints) => {
    const client = await connected({ ...discover, ...hints }, { ...hints, tools: [{ name: 'echo', inputSchema: 5 }] });
    expect(await ask(client, 'tools/list')).toEqual({ ...hints, tools: [{ name: 'echo', inputSchema: 5 }] });
    await client.close();
  });

  it.each([
    ['tools/call', { name: 'x', arguments: {} }],
    ['resources/list', {}],
    ['resources/templates/list', {}],
    ['resources/read', { uri: 'a://1' }],
    ['prompts/list', {}],
    ['prompts/get', { name: 'p' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } }],
  ])('of %s is not validated against a schema (C25, C33)', async (method, params) => {
    const odd = { structuredContent: { a: [null] }, content: [{ type: 'of tomorrow' }], own: 7 };
    const client = await connected(discover, odd);
    expect(await ask(client, method, params)).toEqual(odd);
    await client.close();
  });

  it('of an unknown type still fails in the SDK', async () => {
    const client = await connected(discover, { resultType: 'of tomorrow' });
    await expect(ask(client, 'tools/list')).rejects.toMatchObject({ code: 'UNSUPPORTED_RESULT_TYPE' });
    await client.close();
  });
});
