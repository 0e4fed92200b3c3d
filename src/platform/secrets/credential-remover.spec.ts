import { atOnce } from '../../kernel/json.js';
import { credentialsIn, credentialsOf, CredentialRemover } from './credential-remover.js';

describe('the credentials', () => {
  it.each([
    [{ Authorization: 'Bearer abc-123456' }, ['Bearer abc-123456', 'abc-123456']],
    [{ 'X-User-Key': 'hunter-two' }, ['hunter-two', 'hunter-two']],
    [{ 'X-Region': '9f86d081884c7d65' }, ['9f86d081884c7d65', '9f86d081884c7d65']],
    [{ DB_PASSWORD: 'a b c d e f' }, ['a b c d e f']],
    [{ Accept: 'application/vnd.example+json; version=20260728', 'X-Region': 'eu-west-1', LANG: 'en' }, []],
    [{ BASE_URL: 'https://api.example.com/v1/of/2026', NODE_ENV: 'production', TOKEN: 'short' }, []],
  ])('of %j', (values, credentials) => {
    expect(credentialsIn(values as Record<string, string>)).toEqual(credentials);
  });

  it('of a URL', () => {
    const both = ['p%40ssword', 'p@ssword', 'abcdefg', 'abcdefg'];
    expect(credentialsOf('https://me:p%40ssword@h/x?api_key=abcdefg&page=2')).toEqual(both);
    expect(credentialsOf('https://me:100%zz@h/')).toEqual(['100%zz', '100%zz']);
    expect(new Set(credentialsOf('https://h/?key=first-1&key=second'))).toEqual(new Set(['first-1', 'second']));
    expect(new Set(credentialsOf('https://h/?code=function&sig=signed'))).toEqual(new Set(['function', 'signed']));
    expect(credentialsOf('https://h/x?page=2&postcode=12345678')).toEqual([]);
  });
});

describe('the removal of echoed credentials', () => {
  const remover = new CredentialRemover(['s3cret/value']);

  it('cleans values and names at every depth; an object without credentials is returned itself', () => {
    const [clean, other] = [{ a: [1, null, 'fine'] }, { b: true }];
    const echoed = { clean, other, 's3cret/value': ['x s3cret/value y', { z: encodeURIComponent('s3cret/value') }] };
    const cleaned = remover.clean(echoed) as any;
    expect(cleaned).toEqual({ clean, other, '[redacted]': ['x [redacted] y', { z: '[redacted]' }] });
    expect(cleaned.clean).toBe(clean);
    expect(remover.clean(clean)).toBe(clean);
  });

  it('stops at a depth that the stack allows', () => {
    const deep = JSON.parse(`${'['.repeat(100_000)}"s3cret/value"${']'.repeat(100_000)}`) as unknown;
    expect(JSON.stringify(remover.clean(deep))).toContain('[deep]');
  });

  it('cleans an error of a library, and keeps its class', () => {
    const error = Object.assign(new TypeError('no: s3cret/value'), { data: { got: 's3cret/value' } });
    const cleaned = remover.thrown(error) as typeof error;
    expect([cleaned.constructor, cleaned.message, cleaned.data]).toEqual([
      TypeError,
      'no: [redacted]',
      { got: '[redacted]' },
    ]);
    expect(cleaned.stack).not.toContain('s3cret');
  });

  it('changes nothing when no credential was sent', () => {
    const nothing = new CredentialRemover(['abc']);
    expect([nothing.isEmpty, nothing.clean('abc')]).toEqual([true, 'abc']);
  });

  const inPieces = (...texts: string[]): string[] => {
    const pieces = remover.pieces();
    return [...texts.map((text) => pieces.push(text)), pieces.end()];
  };

  it('cleans a text in pieces: the possible beginning of a credential waits for the next piece', () => {
    expect(inPieces('my key is s3c', 'ret/va', 'lue, no')).toEqual(['my key is ', '', '[redacted], no', '']);
    expect(inPieces(...'a s3cret/value b').join('')).toBe('a [redacted] b');
    expect(inPieces('word', ' and s', 'ome').join('|')).toBe('word| and |some|');
    expect(inPieces('it was s3cret/valu').join('')).toBe('it was [redacted]');
    expect(inPieces('it was s3').join('')).toBe('it was s3');
  });
});

describe('cleaning of parsed JSON with pauses', () => {
  const remover = new CredentialRemover(['secret-4711']);
  const given = () => ({
    list: ['a secret-4711 b', 1, null, { 'x secret-4711': ['secret-4711', { inner: 'secret-4711' }], y: 2n }],
    text: 'none',
  });

  it('removes the same as at once', () => {
    const value = given();
    const cleaned = atOnce(remover.cleaning(value));
    expect(cleaned).toBe(value);
    expect(cleaned).toEqual(remover.clean(given()));
    expect(atOnce(remover.cleaning('secret-4711'))).toBe(remover.clean('secret-4711'));
  });

  it('pauses within many values', () => {
    let pauses = 0;
    const value = Array.from({ length: 50_000 }, () => ({ a: 1 }));
    for (const work = remover.cleaning(value); !work.next().done;) pauses++;
    expect(pauses).toBeGreaterThanOrEqual(9);
  });
});
