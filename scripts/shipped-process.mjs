// Runs commands in the tree of the image, as the image would: its variables, its user, an empty PATH, and nothing that can be
// written but a temporary folder.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { runtime } from './shipped-tree.mjs';
import { isRoot } from './real-services.mjs';

/** How long a process may take until it is ready; the chart's `probes.startupSeconds`. */
const startMs = 120_000;

const account = isRoot ? { uid: runtime.uid, gid: runtime.gid } : {};

/** Starts Node in the tree. @param place `app`, `node` and `scratch`, all of which the user can reach. */
export function start({ app, node, scratch }, name, { args = runtime.command, env = {} }) {
  const temporary = join(scratch, `tmp-${name}`);
  mkdirSync(temporary, { recursive: true });
  chmodSync(temporary, 0o700);
  if (isRoot) chownSync(temporary, runtime.uid, runtime.gid);
  const child = spawn(node, args, {
    ...account,
    cwd: app,
    // A Ctrl-C reaches the tests first, this process when they have ended.
    detached: true,
    env: { ...runtime.env, ...env, PATH: '', TMPDIR: temporary },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const started = { name, child, temporary, out: '', err: '' };
  child.stdout.on('data', (chunk) => (started.out += chunk));
  child.stderr.on('data', (chunk) => (started.err += chunk));
  started.ended = Promise.race([
    once(child, 'close').then(([code, signal]) => code ?? signal),
    once(child, 'error').then(([error]) => Promise.reject(error)),
  ]);
  started.ended.catch(() => undefined);
  return started;
}

/** Runs a command to its end and gives what it wrote to standard output. Throws with all it wrote when it fails. */
export async function finish(place, name, command) {
  const started = start(place, name, command);
  const code = await started.ended;
  if (code !== 0) throw new Error(`${name} ended with ${code}:\n${wrote(started)}`);
  return started;
}

/** Waits for the ready line of a gateway. Throws with all it wrote when it ends instead, or is late. */
export async function becomesReady(started) {
  let timer;
  const late = new Promise((done) => (timer = setTimeout(done, startMs, 'not ready in time')));
  const ready = new Promise((done) => {
    started.child.stdout.on('data', () => started.out.includes('Rialto is ready on ') && done('ready'));
  });
  const what = await Promise.race([ready, late, started.ended.then((code) => `ended with ${code}`)]);
  clearTimeout(timer);
  if (what !== 'ready') throw new Error(`${started.name}: ${what}:\n${wrote(started)}`);
}

/** The last lines of a process. */
export function wrote({ out, err }) {
  return [...out.split('\n'), ...err.split('\n')]
    .filter((line) => line !== '')
    .slice(-40)
    .join('\n');
}
