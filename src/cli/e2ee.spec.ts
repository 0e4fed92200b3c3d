import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkPins, readKeySet, type KeyRing, type KeySet } from '../protocol/e2ee/e2ee.js';
import { newEncryptionKeys, rotateEncryptionKeys, showEncryptionKeys } from './e2ee.js';

describe('RI-52 rialto keys e2ee', () => {
  let folder: string;
  let printed: string;
  const path = (name: string) => join(folder, name);
  const ringIn = (name: string) => JSON.parse(readFileSync(path(name), 'utf8')) as KeyRing;
  const shownBy = (run: () => void): KeySet => {
    printed = '';
    run();
    return readKeySet(JSON.parse(printed));
  };

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'rialto-keys-'));
    jest.spyOn(process.stdout, 'write').mockImplementation((text) => Boolean((printed += String(text))));
    jest.spyOn(process.stderr, 'write').mockReturnValue(true);
  });
  afterEach(() => {
    jest.restoreAllMocks();
    rmSync(folder, { recursive: true });
  });

  it('writes private keys that only the owner can read, and prints the public ones', () => {
    const file = path('keys.json');
    const shown = shownBy(() => newEncryptionKeys({ file }));
    expect(statSync(file).mode & 0o777).toBe(0o600);
    for (const { d } of ringIn('keys.json').keys) expect(printed).not.toContain(d);
    expect(shownBy(() => showEncryptionKeys({ file }))).toEqual(shown);
  });

  it('rotates: keeps the old keys, and endorses the new ones for peers with pins', () => {
    const file = path('keys.json');
    const before = shownBy(() => newEncryptionKeys({ file }));
    const after = shownBy(() => rotateEncryptionKeys({ file, days: '30' }));
    expect(after.keys.slice(0, 2)).toEqual(before.keys);
    expect(checkPins(after, checkPins(before, []))).toHaveLength(4);
    expect(after.keys[2]!.exp! * 1_000).toBeGreaterThan(Date.now());
    expect(ringIn('keys.json').keys).toHaveLength(4);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('never overwrites a file, and explains other failures', () => {
    const file = path('keys.json');
    newEncryptionKeys({ file });
    const before = ringIn('keys.json');
    expect(() => newEncryptionKeys({ file })).toThrow(/exists already/);
    expect(() => rotateEncryptionKeys({ file, days: '0' })).toThrow(/--days 0/);
    expect(ringIn('keys.json')).toEqual(before);
    writeFileSync(path('other.json'), '{"keys":[{}]}');
    expect(() => rotateEncryptionKeys({ file: path('other.json') })).toThrow(/is not a file of/);
    expect(() => showEncryptionKeys({ file: path('none.json') })).toThrow(/cannot be read \(ENOENT\)/);
  });
});
