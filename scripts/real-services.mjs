// Finds, installs or starts a real PostgreSQL and a real Redis for the suites that need them. It uses the servers in
// RIALTO_TEST_DATABASE_URL and RIALTO_TEST_REDIS_URL. Without them it starts a new PostgreSQL, and uses the Redis on
// the usual port or starts a new one. Root installs missing programs from Debian.
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export const isRoot = process.getuid?.() === 0;

const cleanups = [];

/** Stops every server and removes every folder that this module created. */
export async function closeServices() {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
}

/**
 * Returns the administrator URL of a PostgreSQL server, and the number of Jest workers for it. A running server may
 * accept only a hundred connections, and two workers need most of them. `durable` starts a server that keeps
 * acknowledged data, as a gateway in production demands.
 */
export async function findDatabase({ durable = false } = {}) {
  const given = process.env.RIALTO_TEST_DATABASE_URL;
  if (given) return { database: given, workers: '2' };
  const usual = 'postgres://postgres@127.0.0.1:5432/postgres';
  if (!postgresPrograms() && (await databaseAnswers(usual))) return { database: usual, workers: '2' };
  return { database: await startDatabase(durable), workers: '4' };
}

/** Returns the URL of a Redis server: the one in the environment, the one on the usual port, or a new one. */
export async function findRedis() {
  const usual = 'redis://127.0.0.1:6379';
  if (process.env.RIALTO_TEST_REDIS_URL) return process.env.RIALTO_TEST_REDIS_URL;
  return (await redisAnswers(6379)) ? usual : startRedis();
}

async function databaseAnswers(connectionString) {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 2000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query('SELECT rolsuper FROM pg_roles WHERE rolname = current_user');
    return rows[0]?.rolsuper === true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}

function redisAnswers(port) {
  return new Promise((done) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    const end = (answer) => (socket.destroy(), done(answer));
    socket.setTimeout(2000, () => end(false));
    socket.once('error', () => end(false));
    socket.once('data', (data) => end(data.toString().startsWith('+PONG')));
  });
}

async function startDatabase(durable) {
  const programs = postgresPrograms() ?? (install(), postgresPrograms());
  if (!programs) throw new Error('No PostgreSQL: install it or set RIALTO_TEST_DATABASE_URL.');
  const folder = temporaryFolder();
  const data = join(folder, 'data');
  const account = isRoot ? idOf('postgres') : {};
  if (isRoot) execFileSync('install', ['-d', '-o', 'postgres', data]);
  else mkdirSync(data);
  execFileSync(join(programs, 'initdb'), ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C'], {
    ...account,
    cwd: '/',
    stdio: 'ignore',
  });
  const port = await freePort();
  const flags = [
    '-D',
    data,
    '-h',
    '127.0.0.1',
    '-p',
    String(port),
    '-k',
    '',
    '-c',
    'max_connections=300',
    ...(durable ? [] : ['-c', 'fsync=off']),
  ];
  keep(join(programs, 'postgres'), flags, 'SIGINT', account);
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  await until(() => databaseAnswers(url), 'PostgreSQL');
  return url;
}

async function startRedis() {
  if (!isInstalled('redis-server')) install();
  if (!isInstalled('redis-server')) throw new Error('No Redis: install it or set RIALTO_TEST_REDIS_URL.');
  const port = await freePort();
  keep(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', temporaryFolder()],
    'SIGTERM',
    {},
  );
  await until(() => redisAnswers(port), 'Redis');
  return `redis://127.0.0.1:${port}`;
}

function postgresPrograms() {
  const versions = '/usr/lib/postgresql';
  if (existsSync(versions)) {
    const found = readdirSync(versions).filter((version) => existsSync(join(versions, version, 'bin', 'postgres')));
    if (found.length > 0) return join(versions, found.sort((a, b) => Number(b) - Number(a))[0], 'bin');
  }
  return undefined;
}

function install() {
  if (!isRoot || !isInstalled('apt-get')) return;
  process.stderr.write('Installing postgresql and redis-server …\n');
  const options = {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  };
  execFileSync('apt-get', ['update', '-qq'], options);
  execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'postgresql', 'redis-server'], options);
}

function idOf(user) {
  return { uid: Number(execFileSync('id', ['-u', user])), gid: Number(execFileSync('id', ['-g', user])) };
}

function isInstalled(program) {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Runs a server until the end. It has a separate process group, so that Ctrl-C ends the tests before the server. */
function keep(command, args, signal, account) {
  const child = spawn(command, args, { ...account, cwd: '/', stdio: 'ignore', detached: true });
  const ended = new Promise((done) => child.once('exit', done).once('error', done));
  cleanups.push(async () => {
    child.kill(signal);
    await ended;
  });
}

/** Creates a folder that every account can enter. `closeServices` removes it. */
export function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'rialto-services-'));
  chmodSync(folder, 0o755);
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Returns a free port of the loopback interface. */
export async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

async function until(answers, name) {
  for (let tries = 0; tries < 300; tries++) {
    if (await answers()) return;
    await sleep(100);
  }
  throw new Error(`${name} did not start.`);
}

/** Removes the keys with a prefix from a Redis server that continues after the tests. */
export async function dropKeys(url, prefix) {
  const { Redis } = await import('ioredis');
  const client = new Redis(url);
  for await (const keys of client.scanStream({ match: `${prefix}*`, count: 1000 }))
    if (keys.length > 0) await client.unlink(keys);
  client.disconnect();
}

/** Hides the password of a URL, for log lines. */
export function withoutPassword(url) {
  const parsed = new URL(url);
  parsed.password &&= '…';
  return parsed.href;
}
