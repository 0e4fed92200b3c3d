import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ended, startEntry } from '../../support/gateway/cli.js';
import { createTestDatabase } from '../../support/gateway/database.js';
import { startProcess } from '../../support/gateway/process.js';

const isBuilt = process.env.RIALTO_TEST_BUILT === 'yes';
/** Sources have no bundle, and Node 20 keeps no record of what it has compiled. */
const canCount = isBuilt && Number(process.versions.node.split('.')[0]) >= 22;

describe('the build joins the product and its packages', () => {
  let folder: string;
  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'rialto-bundle-'))));
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** Returns the number of modules that a process loaded: Node writes a file here for each of them. */
  const modulesIn = (compiled: string): number =>
    readdirSync(compiled, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length;

  (canCount ? it : it.skip)('a start of the gateway reads few files', async () => {
    const database = await createTestDatabase('bundle');
    const compiled = join(folder, 'compiled');
    const env = { NODE_ENV: 'test', DATABASE_URL: database.url, RIALTO_DATA_DIR: folder, NODE_COMPILE_CACHE: compiled };
    const { ready, child, ended: end } = startProcess(env);
    await ready;
    child.kill('SIGTERM');
    expect((await end).code).toBe(0);
    expect(modulesIn(compiled)).toBeGreaterThan(5);
    expect(modulesIn(compiled)).toBeLessThan(60);
    await database.drop();
  });

  (canCount ? it : it.skip)('a command reads few files', async () => {
    const database = await createTestDatabase('bundle');
    const compiled = join(folder, 'compiled');
    const env = { NODE_ENV: 'test', DATABASE_URL: database.url, NODE_COMPILE_CACHE: compiled };
    const { code } = await ended(startEntry('cli.ts', ['db', 'wait'], env));
    expect(code).toBe(0);
    expect(modulesIn(compiled)).toBeGreaterThan(2);
    expect(modulesIn(compiled)).toBeLessThan(40);
    await database.drop();
  });

  // With another character, Node keeps the whole file as text of two bytes a character.
  (isBuilt ? it : it.skip)('every file has only ASCII characters', () => {
    const bundle = join(process.cwd(), 'dist', 'bundle');
    const wide = readdirSync(bundle).filter((name) => readFileSync(join(bundle, name)).some((byte) => byte > 127));
    expect(wide).toEqual([]);
  });
});
