// Builds the tree of the image in .cache/shipped, as the Dockerfile does. An entry is rebuilt when its inputs have
// changed.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { filesBelow, hashOf, root, run, runNpm } from './setup.mjs';
import { builds, entries, installProduction, isSource, stages } from './shipped-tree.mjs';
import { isRoot } from './real-services.mjs';

const folder = join(root, '.cache', 'shipped');
const app = join(folder, 'app');

/** Builds the tree from the current checkout. No file is writable; root owns all files when root builds it. */
export async function buildTree() {
  mkdirSync(app, { recursive: true });
  chmodSync(app, 0o755);
  const built = [];
  for (const entry of entries) if (await renew(entry)) built.push(entry.name);
  const extra = readdirSync(app).filter((name) => !entries.some((entry) => entry.name === name));
  for (const name of extra) remove(join(app, name));
  if (built.length > 0) seal();
  chmodSync(app, 0o555);
  return { app, built };
}

/** Makes the next run rebuild everything, because the tree was written to. */
export function forgetTree() {
  for (const { name } of entries) rmSync(keyFile(name), { force: true });
}

const keyFile = (name) => join(folder, `${name}.key`);

/** Rebuilds an entry when its inputs have changed; returns true when it did. */
async function renew({ name, stage }) {
  const files = inputs(name, stage);
  const key = hashOf(
    ...files.flatMap((file) => [file, readFileSync(join(root, file))]),
    JSON.stringify({ stages, entries }),
  );
  const target = join(app, name);
  if (existsSync(target) && existsSync(keyFile(name)) && readFileSync(keyFile(name), 'utf8') === key) return false;
  rmSync(keyFile(name), { force: true });
  const work = join(folder, stage ?? 'plain');
  remove(work);
  for (const file of files) copy(file, work);
  if (stage) await commands[stage](work);
  remove(target);
  renameSync(join(work, name), target);
  remove(work);
  writeFileSync(keyFile(name), key);
  return true;
}

/** Returns the files of the checkout from which an entry is built. */
function inputs(name, stage) {
  const copied = stage ? stages[stage].flatMap(({ copy: names = [] }) => names) : [name];
  return copied
    .flatMap((each) => (statSync(join(root, each)).isDirectory() ? filesBelow(join(root, each)) : [join(root, each)]))
    .map((file) => relative(root, file).split(sep).join('/'))
    .filter(isSource);
}

function copy(file, into) {
  mkdirSync(dirname(join(into, file)), { recursive: true });
  copyFileSync(join(root, file), join(into, file));
}

const commands = {
  deps: async (cwd) => {
    const code = await runNpm([...installProduction, '--loglevel=error', '--no-update-notifier'], {
      cwd,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    if (code !== 0) throw new Error(`npm ci failed (exit code ${code})`);
  },
  // Packages are resolved from the checkout, which has the same lock.
  build: async (cwd) => {
    for (const [program, ...args] of builds) {
      const code = await run(process.execPath, [join(root, program), ...args], { cwd, stdio: ['ignore', 2, 2] });
      if (code !== 0) throw new Error(`the build failed (exit code ${code})`);
    }
  },
};

function seal() {
  if (isRoot) execFileSync('chown', ['-R', '0:0', app]);
  execFileSync('chmod', ['-R', 'a-w,a+rX', app]);
  chmodSync(app, 0o755);
}

/** Removes a file or a folder, also a read-only one. */
export function remove(target) {
  if (!existsSync(target)) return;
  if (!isRoot) execFileSync('chmod', ['-R', 'u+w', target]);
  rmSync(target, { recursive: true, force: true });
}

/** Lists every file and folder of a tree, with values that change on a write. */
export function listing(top) {
  const found = new Map();
  const walk = (at) => {
    const stats = lstatSync(at);
    const { mode, mtimeMs, size, uid } = stats;
    found.set(relative(top, at) || '.', `mode ${mode.toString(8)}, mtime ${mtimeMs}, ${size} bytes, uid ${uid}`);
    if (stats.isDirectory()) for (const name of readdirSync(at)) walk(join(at, name));
  };
  walk(top);
  return found;
}

/** Compares two listings: one line for each difference. */
export function differences(before, after) {
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names]
    .filter((name) => before.get(name) !== after.get(name))
    .map((name) => `${name}: ${before.get(name) ?? 'absent'} → ${after.get(name) ?? 'absent'}`);
}

/**
 * Places the tree in a folder outside the checkout, where Node finds no packages except those of the tree. Files are
 * hard links where the file system allows it. Throws when a folder above has packages.
 */
export function place(tree, into) {
  for (let above = dirname(into); ; above = dirname(above)) {
    const packages = join(above, 'node_modules');
    if (existsSync(packages)) throw new Error(`${packages} would stand in for a package that the tree lacks`);
    if (above === dirname(above)) break;
  }
  copyTree(tree, into);
  return into;
}

function copyTree(from, to) {
  const stats = lstatSync(from);
  if (stats.isSymbolicLink()) return symlinkSync(readlinkSync(from), to);
  if (!stats.isDirectory()) return link(from, to);
  mkdirSync(to);
  for (const name of readdirSync(from)) copyTree(join(from, name), join(to, name));
  chmodSync(to, stats.mode & 0o777);
}

function link(from, to) {
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}

/** Returns a copy of Node with the permissions of the image: root owns it, and the user may run but not read it. */
export function nodeOf(scratch) {
  if (!isRoot) return process.execPath;
  const target = join(scratch, 'node');
  copyFileSync(process.execPath, target);
  chmodSync(target, 0o711);
  return target;
}
