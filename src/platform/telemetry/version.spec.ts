import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { commitOf, versionText } from './version.js';

describe('P20: the commit of a build', () => {
  const output = mkdtempSync(join(tmpdir(), 'rialto-version-'));
  afterAll(() => rmSync(output, { recursive: true }));

  it('is absent when the build did not know it', () => {
    expect(commitOf(output)).toEqual({});
    expect(versionText({ version: '0.1.0' })).toBe('0.1.0');
  });

  it.each(['', 'unknown', '<html>'])('is absent when the file contains %j', (text) => {
    writeFileSync(join(output, 'commit'), text);
    expect(commitOf(output)).toEqual({});
  });

  it.each(['', '-dirty'])('is the commit that the build wrote, with the suffix %j', (state) => {
    const commit = `0123456789abcdef0123456789abcdef01234567${state}`;
    writeFileSync(join(output, 'commit'), `${commit}\n`);
    expect(commitOf(output)).toEqual({ commit });
    expect(versionText({ version: '0.1.0', commit })).toBe(`0.1.0 (${commit})`);
  });
});
