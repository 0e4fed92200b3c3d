import type { JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import { inRounds } from './client-requests.js';

describe('a server that asks first', () => {
  const peer = (capabilities: JsonObject): Peer => ({ era: 'modern', capabilities }) as unknown as Peer;
  const asking = (params: JsonObject, more: JsonObject = {}): JsonObject => ({
    resultType: 'input_required',
    inputRequests: { one: { method: 'elicitation/create', params } },
    ...more,
  });
  const rounds = (capabilities: JsonObject, result: JsonObject) =>
    inRounds({ peer: peer(capabilities), roots: [], signal: undefined }, () => Promise.resolve(result));

  it('hands its questions to a client of its revision that said it can be asked', async () => {
    const question = asking({ message: 'Who?' });
    expect(await rounds({ elicitation: { form: {} } }, question)).toBe(question);
  });

  it.each<[string, JsonObject, JsonObject, JsonObject]>([
    ['nothing', {}, { message: 'Who?' }, { elicitation: {} }],
    ['forms alone', { elicitation: { form: {} } }, { mode: 'url', url: 'https://a' }, { elicitation: { url: {} } }],
  ])('asks nobody who can be asked %s: it is told what is missing', async (_name, has, params, missing) => {
    await expect(rounds(has, asking(params))).rejects.toMatchObject({
      code: 'remote_error',
      data: { relayed: { code: -32_021, data: { requiredCapabilities: missing } } },
    });
  });

  it('names all that is missing, once', async () => {
    const ask = (params: JsonObject) => ({ method: 'elicitation/create', params });
    const several = { resultType: 'input_required', inputRequests: { a: ask({ mode: 'url' }), b: ask({}) } };
    await expect(rounds({}, several)).rejects.toMatchObject({
      data: { relayed: { data: { requiredCapabilities: { elicitation: { url: {} } } } } },
    });
  });

  it('with a depth that ends a stack is refused', async () => {
    const deep = JSON.parse(`${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`) as JsonObject;
    const capabilities = { elicitation: { form: {} } };
    for (const result of [asking({ message: 'Who?', deep }), asking({ message: 'Who?' }, { _meta: deep })])
      await expect(rounds(capabilities, result)).rejects.toMatchObject({ code: 'remote_invalid_response' });
  });
});
