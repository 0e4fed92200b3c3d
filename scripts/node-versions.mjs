// `node scripts/node-versions.mjs 24`: installs the pinned versions of Node below .cache and prints the folder of one
// version. They are tools of the tests with a separate lock file in test/node-versions, and not dependencies of Rialto.
import { copyFileSync, existsSync, mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root, run } from './setup.mjs';

const folder = join(root, '.cache', 'node-versions');
const source = join(root, 'test', 'node-versions');
const files = ['package.json', 'package-lock.json'];

/** The supported arguments, oldest version first. */
export const nodeVersions = ['20.19', '20', '22', '24', '26'];

/**
 * Returns the folder of the `node` program of a version, for the front of PATH. Throws when this platform has no such
 * version.
 */
export async function nodeFolder(version) {
  if (!isInstalled()) await install();
  const found = join(folder, 'node_modules', `node-${version}-${process.platform}-${process.arch}`, 'bin');
  if (existsSync(found)) return found;
  throw new Error(`There is no Node ${version} for ${process.platform} ${process.arch} in ${source}.`);
}

function isInstalled() {
  const copy = join(folder, 'node_modules', '.package-lock.json');
  if (!existsSync(copy)) return false;
  return files.every((file) => existsSync(join(folder, file)) && textOf(folder, file) === textOf(source, file));
}

const textOf = (...path) => readFileSync(join(...path), 'utf8');

async function install() {
  process.stderr.write('Installing the versions of Node for the tests …\n');
  mkdirSync(folder, { recursive: true });
  for (const file of files) copyFileSync(join(source, file), join(folder, file));
  const flags = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const code = await run('npm', flags, { cwd: folder, stdio: ['ignore', 2, 2], shell: process.platform === 'win32' });
  if (code !== 0) throw new Error(`npm ci failed in ${folder} (exit code ${code}).`);
}

if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href)
  process.stdout.write(`${await nodeFolder(process.argv[2] ?? '24')}\n`);
