import type { JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import { answersTo } from './client-requests.js';

describe('answersTo: a server that asks for input first', () => {
  const peer = (capabilities: JsonObject): Peer => ({ era: 'modern', capabilities }) as unknown as Peer;
  const inputRequired = (params: JsonObject, more: JsonObject = {}): JsonObject => ({
    resultType: 'input_required',
    inputRequests: { one: { method: 'elicitation/create', params } },
    ...more,
  });
  const rounds = (capabilities: JsonObject, result: JsonObject) =>
    answersTo(result, { peer: peer(capabilities), roots: [], signal: undefined });

  it('leaves the questions to a client of the same revision that declared the capability', async () => {
    const question = inputRequired({ message: 'Who?' });
    expect(await rounds({ elicitation: { form: {} } }, question)).toBeUndefined();
  });

  it.each<[string, JsonObject, JsonObject, JsonObject]>([
    ['nothing', {}, { message: 'Who?' }, { elicitation: {} }],
    ['only forms', { elicitation: { form: {} } }, { mode: 'url', url: 'https://a' }, { elicitation: { url: {} } }],
  ])('refuses a client that can be asked %s, and names the missing capability', async (_name, has, params, missing) => {
    await expect(rounds(has, inputRequired(params))).rejects.toMatchObject({
      code: 'remote_error',
      data: { relayed: { code: -32_021, data: { requiredCapabilities: missing } } },
    });
  });

  it('names each missing capability once', async () => {
    const ask = (params: JsonObject) => ({ method: 'elicitation/create', params });
    const several = { resultType: 'input_required', inputRequests: { a: ask({ mode: 'url' }), b: ask({}) } };
    await expect(rounds({}, several)).rejects.toMatchObject({
      data: { relayed: { data: { requiredCapabilities: { elicitation: { url: {} } } } } },
    });
  });

  it('refuses a result that nests too deep', async () => {
    const deep = JSON.parse(`${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`) as JsonObject;
    const capabilities = { elicitation: { form: {} } };
    for (const result of [
      inputRequired({ message: 'Who?', deep }),
      inputRequired({ message: 'Who?' }, { _meta: deep }),
    ])
      await expect(rounds(capabilities, result)).rejects.toMatchObject({ code: 'remote_invalid_response' });
  });
});
