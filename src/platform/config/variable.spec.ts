import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readEnvironment, secretSettings } from './env.schema.js';
import { secretVariable } from './variable.js';

const folder = mkdtempSync(join(tmpdir(), 'rialto-secrets-'));
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

describe('a variable that holds a secret', () => {
  it('may be a file; its final line end is not part of the value', () => {
    const problems: string[] = [];
    expect(secretVariable({ KEY: 'a' }, 'KEY', problems)).toBe('a');
    expect(secretVariable({ KEY_FILE: file('one', 'b c \n') }, 'KEY', problems)).toBe('b c ');
    expect(secretVariable({ KEY_FILE: file('two', 'd\r\n') }, 'KEY', problems)).toBe('d');
    expect(secretVariable({}, 'KEY', problems)).toBeUndefined();
    expect(problems).toEqual([]);
  });

  it('is a problem when it is given in both ways, or when the file cannot be read; no problem shows the value', () => {
    const problems: string[] = [];
    secretVariable({ KEY: 'canary', KEY_FILE: file('three', 'canary') }, 'KEY', problems);
    secretVariable({ KEY_FILE: join(folder, 'absent') }, 'KEY', problems);
    expect(problems).toEqual([
      'KEY and KEY_FILE are both set; unset one of them',
      'KEY_FILE names a file that cannot be read (ENOENT)',
    ]);
  });

  it('can be a file for every secret setting', () => {
    const values: Record<string, string> = {
      A2A_SECRET: 'z'.repeat(40),
      RIALTO_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'),
      RIALTO_ENCRYPTION_KEY_OTHER: Buffer.alloc(32, 8).toString('base64'),
      RIALTO_ADMIN_PASSWORD: 'long enough for all',
      DATABASE_URL: 'postgres://u:p@h/d',
      RIALTO_DATABASE_DIRECT_URL: 'postgres://u:p@h/e',
      REDIS_URL: 'redis://h',
      RIALTO_AUDIT_ANCHOR_URL: 'https://h/anchor?key=k',
      RIALTO_AUDIT_TIMESTAMP_URL: 'https://h/tsa?key=k',
    };
    expect(Object.keys(values).sort()).toEqual([...secretSettings].sort());
    const env = Object.fromEntries(secretSettings.map((name) => [`${name}_FILE`, file(name, `${values[name]}\n`)]));
    const read = readEnvironment(env);
    expect(read.problems).toEqual([]);
    expect(read.values).toMatchObject(values);
    expect(readEnvironment({ RIALTO_LOG_LEVEL_FILE: '/x' }).problems).toEqual([
      expect.stringContaining('RIALTO_LOG_LEVEL_FILE is not a setting'),
    ]);
  });
});
