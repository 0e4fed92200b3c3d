import { randomBytes } from 'node:crypto';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

const children = new Set();
process.once('exit', () => children.forEach((child) => child.kill('SIGTERM')));

/**
 * Starts a script and waits for a line of its output that matches. Returns the match and a function that stops the
 * script.
 */
export function start(file, { args = [], env = {}, ready }) {
  const child = spawn(process.execPath, [resolve(root, file), ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.add(child);
  child.once('exit', () => children.delete(child));
  return new Promise((resolve, reject) => {
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
      const match = ready.exec(output);
      if (match) resolve({ match, pid: child.pid, stop: () => stop(child) });
    });
    child.once('exit', (code) => reject(new Error(`${file} ended with ${code}: ${output}`)));
  });
}

function stop(child) {
  if (child.exitCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', resolve);
    child.kill('SIGTERM');
  });
}

/**
 * Starts a gateway as a user does: with an embedded database unless DATABASE_URL is set, durable, with policy, audit
 * and metrics.
 */
export async function startRialto(env = {}, checkout = root) {
  const dataDir = mkdtempSync(join(tmpdir(), 'rialto-bench-'));
  const secret = randomBytes(36).toString('base64');
  const gateway = await start(join(checkout, 'dist', 'src', 'main.js'), {
    env: {
      NODE_ENV: 'development',
      PORT: '0',
      METRICS_PORT: '0',
      RIALTO_DATA_DIR: dataDir,
      RIALTO_LOG_LEVEL: 'warn',
      RIALTO_RATE_LIMIT_PRINCIPAL: '1000000',
      RIALTO_RATE_LIMIT_ORG: '10000000',
      A2A_SECRET: secret,
      ...env,
    },
    ready: /Rialto is ready on (\S+)[\s\S]*token\s+(\S+)/,
  });
  const [, url, tokenFile] = gateway.match;
  const stopAll = async () => {
    await gateway.stop();
    rmSync(dataDir, { recursive: true, force: true });
  };
  return { url, token: readFileSync(tokenFile, 'utf8').trim(), secret, pid: gateway.pid, stop: stopAll };
}

/**
 * Starts the gateway of the built checkout at BASELINE, for a comparison in the same run. Returns undefined without
 * BASELINE.
 */
export async function startBaseline(env = {}) {
  return process.env.BASELINE ? startRialto(env, process.env.BASELINE) : undefined;
}

/** Starts a plain BullMQ loop (bench/queue/bare.mjs). `shoot` runs a shot of it. */
export async function startBare(database, queue, kind, ...more) {
  const { match, pid, stop } = await start('bench/queue/bare.mjs', {
    args: [database, queue, kind, ...more],
    ready: /listening (\d+)/,
  });
  const shoot = async (shot) => {
    const before = cpuMicros(pid);
    const result = await json(`http://127.0.0.1:${match[1]}/?${new URLSearchParams(shot)}`, { method: 'GET' });
    return { ...result, cpu: (cpuMicros(pid) - before) / result.count };
  };
  return { shoot, stop };
}

/** Returns the user and system time of a process so far, in microseconds (Linux). */
export function cpuMicros(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
    return (Number(fields[11]) + Number(fields[12])) * 10_000;
  } catch {
    return NaN;
  }
}

/** Waits until `check` returns true. Throws an error that names `what` after a minute. */
export async function until(what, check, everyMs = 20) {
  for (const startedAt = performance.now(); !(await check()); await sleep(everyMs))
    if (performance.now() - startedAt > 60_000)
      throw new Error(`after one minute the condition does not hold: ${what}`);
}

export async function json(url, { method = 'POST', token, body } = {}) {
  const response = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    body: body && JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return response.json();
}
