import { keptReply } from './reply.js';

const url = 'https://hooks.example/in?key=Q%20SECRET&plain=QPLAIN&NAMELESS&x=1';
const token = 'TOK"EN\\SE/CRET <&>+';
const credentials = 'CRED"SE\\CRET';
const kept = (reply: string, isCut = false, secrets: (string | undefined)[] = [token, credentials, undefined, '']) =>
  keptReply(reply, { url, secrets }, isCut);

describe('what is kept of a reply', () => {
  const inJson = (text: string) => JSON.stringify(text).slice(1, -1);
  it.each<[string, (text: string) => string]>([
    ['plain', (text) => text],
    ['JSON', inJson],
    ['JSON in JSON', (text) => inJson(inJson(text))],
    ['JSON whose slashes are escaped', (text) => inJson(text).replaceAll('/', '\\/')],
    [
      'JSON that may stand in HTML',
      (text) => inJson(text).replace(/[<>&+]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`),
    ],
    ['a URL', encodeURIComponent],
    ['a form', (text) => new URLSearchParams({ text }).toString().slice('text='.length)],
    [
      'HTML',
      (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;'),
    ],
    ['Base64', (text) => Buffer.from(text).toString('base64').replace(/=+$/, '')],
    ['Base64 for URLs', (text) => Buffer.from(text).toString('base64url')],
  ])('holds nothing of what was sent, said back as %s', (_name, written) => {
    for (const secret of [token, credentials, 'Q SECRET', 'Q%20SECRET', 'QPLAIN', 'NAMELESS'])
      expect(kept(`you said ${written(secret)}, thanks`)).toBe('you said [redacted], thanks');
  });

  it('is cut after what was sent is taken out of it, wherever it stood', () => {
    for (const at of [0, 4_080, 4_090, 4_096, 5_000]) {
      const text = kept(`${'-'.repeat(at)}${credentials}`, true);
      expect(text).not.toContain('CRED');
      expect(text.length).toBeLessThanOrEqual(4_096);
    }
    expect(kept(`${credentials.repeat(20)}${credentials.slice(0, 5)}`, true)).toBe('[redacted]'.repeat(20));
    expect(kept('short CRE')).toBe('short CRE');
  });

  it('holds a word of any length that was the secret, but no letters of short parameters are taken for secrets', () => {
    expect(kept('a1b1', false, ['a'])).toBe('[redacted]1b1');
  });

  it('holds nothing that looks like a credential of others', () => {
    expect(kept('Authorization: Bearer abcdefghijk')).toBe('Authorization: [redacted]');
    expect(kept('eyJhbGciOiJub25lIn0.eyJzdWIiOiJtZSJ9.x and more')).toBe('[redacted] and more');
  });

  it('is text as it came where nothing was said back', () => {
    expect(kept('ünïcode {"ok":true} 100% + 1')).toBe('ünïcode {"ok":true} 100% + 1');
    expect(keptReply('fine', { url: 'https://x.example/%zz?%zz', secrets: [] }, false)).toBe('fine');
  });
});
