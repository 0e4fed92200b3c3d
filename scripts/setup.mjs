// `node scripts/setup.mjs`: installs and builds what is missing, and needs only Node. All its output goes to standard
// error, so that standard output belongs to the command that runs after it.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { builds } from './shipped-tree.mjs';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const path = (...parts) => join(root, ...parts);
const git = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8' });
const say = (line) => process.stderr.write(`${line}\n`);
const installStamp = path('node_modules', '.rialto-installed');
const buildStamp = path('dist', '.rialto-built');
const commitFile = path('dist', 'commit');
const buildInfo = path('.cache', 'build.tsbuildinfo');
const lock = path('.cache', 'setup.lock');

/** Prints one line that says what is missing, and ends this process. */
function fail(line, code = 1) {
  say(line);
  process.exit(code);
}

/** Makes the checkout ready to run. Takes a few milliseconds when it already is. */
export async function setUp() {
  process.env.NODE_ENV ||= 'development';
  process.chdir(root);
  requireNode();
  if (!installIsStale() && !buildIsStale()) return updateCommit();
  const unlock = await acquireLock();
  try {
    if (installIsStale()) await install();
    if (buildIsStale()) await build();
    else updateCommit();
  } finally {
    unlock();
  }
}

// The built program itself rejects every unsupported version. A version that is too old cannot build it, so this check
// comes first.
function requireNode() {
  const { engines } = JSON.parse(readFileSync(path('package.json'), 'utf8'));
  const [major, minor] = process.versions.node.split('.').map(Number);
  const ranges = [...engines.node.matchAll(/(\d+)\.(\d+)\.\d+/g)].map(([, ...range]) => range.map(Number));
  const known = ranges.find(([first]) => first === major);
  if (known ? minor >= known[1] : major > 22) return;
  fail(`Rialto needs Node ${ranges.map((range) => range.join('.')).join(', ')} or newer; this is ${process.version}.`);
}

/**
 * Runs a program to its end and returns its exit code. Forwards signals to it, except SIGINT from a terminal, which the
 * program receives directly.
 */
export function run(command, args, options = {}) {
  const child = spawn(command, args, { stdio: 'inherit', cwd: root, ...options });
  const pass = (signal) => {
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  for (const signal of signals) process.on(signal, pass);
  return new Promise((done, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      for (const name of signals) process.removeListener(name, pass);
      done(signal ? 128 + ({ SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 }[signal] ?? 0) : code);
    });
  });
}

/** Runs npm to its end: the npm that runs this process, if any, else the npm on the PATH. */
export function runNpm(args, options = {}) {
  const npm = process.env.npm_execpath;
  if (npm && /^npm-cli\.c?js$/.test(basename(npm))) return run(process.execPath, [npm, ...args], options);
  return run('npm', args, { shell: process.platform === 'win32', ...options });
}

/** Returns the SHA-256 of texts and bytes, in hex. */
export const hashOf = (...parts) =>
  parts.reduce((hash, part) => hash.update(part).update('\0'), createHash('sha256')).digest('hex');
const readStamp = (file) => (existsSync(file) ? readFileSync(file, 'utf8') : undefined);

function installKey() {
  return hashOf(readFileSync(path('package-lock.json')), process.platform, process.arch);
}

function installIsStale() {
  const key = installKey();
  if (readStamp(installStamp) === key) return false;
  if (!matchesLock()) return true;
  writeFileSync(installStamp, key);
  return false;
}

// The result of a manual `npm ci` is accepted when it has every package of the lock for this machine.
function matchesLock() {
  const hidden = path('node_modules', '.package-lock.json');
  if (!existsSync(hidden)) return false;
  const installed = JSON.parse(readFileSync(hidden, 'utf8')).packages;
  const wanted = JSON.parse(readFileSync(path('package-lock.json'), 'utf8')).packages;
  return Object.entries(wanted).every(([name, entry]) => {
    if (name === '' || entry.link) return true;
    if (entry.optional && !isForThisMachine(entry)) return true;
    return installed[name]?.version === entry.version && existsSync(path(name));
  });
}

function isForThisMachine({ os, cpu, libc }) {
  return os?.includes(process.platform) && cpu?.includes(process.arch) && (!libc || libc.includes('glibc'));
}

async function install() {
  say('Installing packages (npm ci) …');
  // No package needs its install script. The build needs devDependencies, also with NODE_ENV=production.
  const flags = [
    'ci',
    '--include=dev',
    '--include=optional',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ];
  const started = Date.now();
  const code = await runNpm(flags, { stdio: ['ignore', 'ignore', 'inherit'] }).catch((error) =>
    fail(`npm is missing: ${error.message}`),
  );
  if (code !== 0) fail(`npm ci failed (exit code ${code}).`, code);
  writeFileSync(installStamp, installKey());
  say(`Installed in ${seconds(started)}.`);
}

/** Returns every file below a folder, in the same order on every machine. */
export function filesBelow(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => (entry.isDirectory() ? filesBelow(join(folder, entry.name)) : [join(folder, entry.name)]));
}

function buildKey() {
  const sources = ['src', 'migrations']
    .flatMap((folder) => filesBelow(path(folder)))
    .filter((file) => !file.endsWith('.spec.ts'));
  const settings = [
    'tsconfig.json',
    'tsconfig.build.json',
    'package.json',
    'package-lock.json',
    'scripts/bundle.mjs',
  ].map((file) => path(file));
  return hashOf(...[...sources, ...settings].flatMap((file) => [relative(root, file), readFileSync(file)]));
}

function buildIsStale() {
  return readStamp(buildStamp) !== buildKey();
}

async function build() {
  say('Building …');
  const started = Date.now();
  const key = buildKey(); // computed before: a file that is saved during the build is built next time
  if (!existsSync(buildStamp)) rmSync(buildInfo, { force: true }); // tsc would trust it and leave a lost dist empty
  for (const args of builds) {
    const code = await run(process.execPath, args, { stdio: ['ignore', 2, 2] });
    if (code === 0) continue;
    rmSync(buildStamp, { force: true });
    fail(`The build failed (exit code ${code}).`, code);
  }
  dropOrphans();
  mkdirSync(path('dist'), { recursive: true });
  writeFileSync(commitFile, `${commitOfSources()}\n`);
  writeFileSync(buildStamp, key);
  say(`Built in ${seconds(started)}.`);
}

/** Writes the commit again when a new one has the sources of the build: its output stays valid. */
function updateCommit() {
  const head = git('rev-parse', '--verify', 'HEAD');
  const known = readStamp(commitFile)?.trim().replace('-dirty', '');
  if (head.status === 0 && head.stdout.trim() !== known) writeFileSync(commitFile, `${commitOfSources()}\n`);
}

/**
 * Returns the commit of the sources for `/version`, with `-dirty` when the sources differ from it. Without git, returns
 * COMMIT.
 */
function commitOfSources() {
  const head = git('rev-parse', '--verify', 'HEAD');
  // A folder inside the checkout of another project must not use the commit of that project.
  const isOwn = head.status === 0 && git('ls-files', '--error-unmatch', 'package.json').status === 0;
  if (!isOwn) return process.env.COMMIT ?? '';
  const isDirty = git('status', '--porcelain', '--', 'src', 'migrations').stdout !== '';
  return head.stdout.trim() + (isDirty ? '-dirty' : '');
}

// tsc leaves the output of a deleted source, and a deleted migration must not run.
function dropOrphans() {
  for (const folder of ['src', 'migrations']) {
    for (const file of filesBelow(path('dist', folder))) {
      const source = relative(path('dist'), file).replace(/(\.js|\.d\.ts)(\.map)?$/, '.ts');
      if (source.endsWith('.ts') && !existsSync(path(source))) rmSync(file);
    }
  }
}

// Waits until no other set-up runs. The lock file appears together with its content, the process id; the lock of a
// process that is gone does not count.
async function acquireLock() {
  mkdirSync(dirname(lock), { recursive: true });
  const own = `${lock}.${process.pid}`;
  writeFileSync(own, String(process.pid));
  for (let hasLogged = false; ; await sleep(100)) {
    try {
      linkSync(own, lock);
      rmSync(own);
      const unlock = () => {
        process.removeListener('exit', unlock);
        rmSync(lock, { force: true });
      };
      return process.once('exit', unlock) && unlock;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    const holder = Number(readStamp(lock) ?? 0);
    if (holder && !isRunning(holder)) rmSync(lock, { force: true });
    else if (!hasLogged) say(`Waiting for another set-up (process ${holder}) …`);
    hasLogged = true;
  }
}

function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Formats the time since `started`. */
export function seconds(started) {
  return `${((Date.now() - started) / 1000).toFixed(1)} s`;
}

if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) await setUp();
