import { canonicalJson } from '../../../kernel/canonical-json.js';
import type { Json, JsonObject } from '../../../kernel/json.js';
import { signaturesOf, signedTexts, signersOf, type SignedText } from './card-signature.js';

const url = 'https://agents.example/.well-known/agent-card.json';
const card: JsonObject = {
  name: 'Desk',
  description: '',
  version: '1',
  supportedInterfaces: [{ url: 'https://agents.example/a2a', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { streaming: false },
  defaultInputModes: [],
  skills: [{ id: 'a', name: 'a', description: 'd', tags: [] }],
};
async function texts(of: JsonObject, others: string[] = []): Promise<SignedText[]> {
  const found: SignedText[] = [];
  for await (const text of signedTexts(of, url, () => Promise.resolve(others))) found.push(text);
  return found;
}
const header = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('signaturesOf', () => {
  it('reads the protected header and ignores the unprotected one', () => {
    const signatures: Json[] = [
      {
        protected: header({ alg: 'ES256', kid: 'k', jku: 'https://x/', crit: ['b64'] }),
        signature: 's',
        header: { kid: 'z' },
      },
      { protected: header({ alg: 'none' }), signature: '', header: { kid: 'z' } },
      { protected: header({ kid: 'k' }), signature: 's' },
      { protected: '!', signature: 's' },
      { signature: 's' },
      'text',
    ];
    expect(signaturesOf({ signatures })).toEqual([
      expect.objectContaining({ alg: 'ES256', kid: 'k', jku: 'https://x/', isCritical: true }),
      expect.objectContaining({ alg: 'none', kid: '', isCritical: false }),
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(signersOf({ signatures: [signatures[1]!, signatures[0]!, signatures[0]!] })).toEqual(['', 'k']);
    expect([signersOf({}), signersOf({ signatures: null })]).toEqual([[], []]);
  });
});

describe('signedTexts', () => {
  it('starts with the card as it was sent, without its signatures', async () => {
    expect((await texts({ ...card, signatures: [{ protected: 'a', signature: 'b' }] }))[0]).toEqual({
      text: canonicalJson(card),
      isWhole: true,
    });
  });

  it('continues with the forms without defaults, each once, and reports that they mean the same card', async () => {
    const [, lean, leanest, ...rest] = await texts(card);
    expect(lean).toEqual({ text: expect.not.stringContaining('description":""'), isWhole: true });
    expect(lean!.text).toContain('"streaming":false');
    expect(leanest!.text).not.toContain('streaming');
    expect([leanest!.isWhole, rest]).toEqual([true, []]);
  });

  it('escapes characters outside ASCII as Python does', async () => {
    const [exact, ascii] = await texts({ ...card, name: 'Büro 🗄' });
    expect(ascii!.text).toContain('B\\u00fcro \\ud83d\\uddc4');
    expect(JSON.parse(ascii!.text)).toEqual(JSON.parse(exact!.text));
  });

  it('reports a form that lacks members on which the gateway acts', async () => {
    const hybrid = { ...card, url: 'https://elsewhere.example/a2a', protocolVersion: '0.3.0' };
    const found = await texts(hybrid, [canonicalJson(card)]);
    expect(found.find(({ text }) => text === canonicalJson(card))!.isWhole).toBe(false);
    expect(found[0]!.isWhole).toBe(true);
  });
});
