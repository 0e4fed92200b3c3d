// Runs commands in the tree of the image, as the image would: with its variables, its user and an empty PATH, and with
// write access only to a temporary folder.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { runtime } from './shipped-tree.mjs';
import { isRoot } from './real-services.mjs';

/** Milliseconds until a process must be ready; the chart's `probes.startupSeconds`. */
const startMs = 120_000;

const account = isRoot ? { uid: runtime.uid, gid: runtime.gid } : {};

/**
 * Starts Node in the tree.
 * @param place `app`, `node` and `scratch`, all of which the user can access.
 */
export function start({ app, node, scratch }, name, { args = runtime.command, env = {} }) {
  const temporary = join(scratch, `tmp-${name}`);
  mkdirSync(temporary, { recursive: true });
  chmodSync(temporary, 0o700);
  if (isRoot) chownSync(temporary, runtime.uid, runtime.gid);
  const child = spawn(node, args, {
    ...account,
    cwd: app,
    // A Ctrl-C ends the tests first; this process ends after them.
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

/** Runs a command to its end and returns its standard output. Throws with its last output lines when it fails. */
export async function finish(place, name, command) {
  const started = start(place, name, command);
  const code = await started.ended;
  if (code !== 0) throw new Error(`${name} ended with ${code}:\n${wrote(started)}`);
  return started;
}

/**
 * Waits for the ready line of a gateway. Throws with its last output lines when it ends before, or is not ready in
 * time.
 */
export async function becomesReady(started) {
  let timer;
  const late = new Promise((done) => (timer = setTimeout(done, startMs, 'not ready within 120 s')));
  const ready = new Promise((done) => {
    started.child.stdout.on('data', () => started.out.includes('Rialto is ready on ') && done('ready'));
  });
  const what = await Promise.race([ready, late, started.ended.then((code) => `ended with ${code}`)]);
  clearTimeout(timer);
  if (what !== 'ready') throw new Error(`${started.name}: ${what}:\n${wrote(started)}`);
}

/** Returns the last 40 lines of the output of a process. */
export function wrote({ out, err }) {
  return [...out.split('\n'), ...err.split('\n')]
    .filter((line) => line !== '')
    .slice(-40)
    .join('\n');
}
