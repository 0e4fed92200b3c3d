import { loadSettings, SettingsError } from './settings.js';

const goodSecret = 'kq3-Vt9fB2mZ7xR5wN8pL4sD6gH1jC0yQe';
const goodKey = Buffer.from('0123456789abcdef0123456789abcdef').toString('base64');
const given = { DATABASE_URL: 'postgres://rialto@db/rialto', RIALTO_ENCRYPTION_KEY: goodKey, A2A_SECRET: goodSecret };

function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    loadSettings({ ...given, ...env });
    return [];
  } catch (error) {
    return (error as SettingsError).problems;
  }
}

it('S3 refuses in production secrets that can be guessed, and one secret for two purposes', () => {
  const production = (env: Record<string, string>) => problemsOf({ NODE_ENV: 'production', ...env });
  expect(production({})).toEqual([]);
  expect(production({ A2A_SECRET: ' '.repeat(32) })).toEqual([
    expect.stringMatching(/^A2A_SECRET can be guessed; .*base64 48/),
  ]);
  const zero = Buffer.alloc(32).toString('base64');
  expect(production({ RIALTO_ENCRYPTION_KEY: zero, RIALTO_ENCRYPTION_KEY_OTHER: zero })).toEqual([
    expect.stringMatching(/^RIALTO_ENCRYPTION_KEY can be guessed; .*base64 32/),
    expect.stringMatching(/^RIALTO_ENCRYPTION_KEY_OTHER can be guessed/),
  ]);
  expect(production({ RIALTO_ADMIN_PASSWORD: 'aaaaaaaaaaaa' })).toHaveLength(1);
  expect(production({ A2A_SECRET: goodKey })).toEqual([expect.stringContaining('must differ')]);
  const weak = { A2A_SECRET: 'ab'.repeat(20), RIALTO_ADMIN_PASSWORD: 'aaaaaaaaaaaa' };
  expect(problemsOf({ NODE_ENV: 'development', ...weak })).toEqual([]);
});
