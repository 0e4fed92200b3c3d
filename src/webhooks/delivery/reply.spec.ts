import { keptReply } from './reply.js';

const url = 'https://hooks.example/in?key=Q%20SECRET&plain=QPLAIN&NAMELESS&x=1';
const token = 'TOK"EN\\SE/CRET <&>+';
const credentials = 'CRED"SE\\CRET';
const stored = (reply: string, isCut = false, secrets: (string | undefined)[] = [token, credentials, undefined, '']) =>
  keptReply(reply, { url, secrets }, isCut);

describe('the stored part of a reply', () => {
  const inJson = (text: string) => JSON.stringify(text).slice(1, -1);
  it.each<[string, (text: string) => string]>([
    ['plain', (text) => text],
    ['JSON', inJson],
    ['JSON in JSON', (text) => inJson(inJson(text))],
    ['JSON with escaped slashes', (text) => inJson(text).replaceAll('/', '\\/')],
    [
      'JSON that is escaped for HTML',
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
  ])('contains no secret that was sent, when the reply repeats it as %s', (_name, encode) => {
    for (const secret of [token, credentials, 'Q SECRET', 'Q%20SECRET', 'QPLAIN', 'NAMELESS'])
      expect(stored(`you sent ${encode(secret)}, thanks`)).toBe('you sent [redacted], thanks');
  });

  it('is cut after the secrets are removed, at any position', () => {
    for (const at of [0, 4_080, 4_090, 4_096, 5_000]) {
      const text = stored(`${'-'.repeat(at)}${credentials}`, true);
      expect(text).not.toContain('CRED');
      expect(text.length).toBeLessThanOrEqual(4_096);
    }
    expect(stored(`${credentials.repeat(20)}${credentials.slice(0, 5)}`, true)).toBe('[redacted]'.repeat(20));
    expect(stored('short CRE')).toBe('short CRE');
  });

  it('has secrets of any length removed, but not the values of short parameters', () => {
    expect(stored('a1b1', false, ['a'])).toBe('[redacted]1b1');
  });

  it('contains nothing that looks like a credential', () => {
    expect(stored('Authorization: Bearer abcdefghijk')).toBe('Authorization: [redacted]');
    expect(stored('eyJhbGciOiJub25lIn0.eyJzdWIiOiJtZSJ9.x and more')).toBe('[redacted] and more');
  });

  it('is unchanged when it repeats no secret', () => {
    expect(stored('ünïcode {"ok":true} 100% + 1')).toBe('ünïcode {"ok":true} 100% + 1');
    expect(keptReply('fine', { url: 'https://x.example/%zz?%zz', secrets: [] }, false)).toBe('fine');
  });
});
