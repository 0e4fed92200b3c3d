// `node scripts/shipped.mjs`: builds the tree of the image and runs it as the chart does: API and worker in production
// mode on a real PostgreSQL and a real Redis, as an unprivileged user, with an empty PATH. Then it runs the specs of
// test/shipped, the commands of `helm test` and `rialto doctor`, and stops the processes. Flags go to Jest.
import { randomBytes } from 'node:crypto';
import { chmodSync, copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import {
  closeServices,
  dropKeys,
  findDatabase,
  findRedis,
  freePort,
  isRoot,
  temporaryFolder,
  withoutPassword,
} from './real-services.mjs';
import { root, run, seconds, setUp } from './setup.mjs';
import { buildTree, differences, forgetTree, listing, nodeOf, place as placeTree, remove } from './shipped-build.mjs';
import { chartCommands } from './shipped-chart.mjs';
import { becomesReady, finish, start, wrote } from './shipped-process.mjs';
import { runtime } from './shipped-tree.mjs';

const name = `rialto_shipped_${randomBytes(5).toString('hex')}`;
const running = [];
const cleanups = [closeServices];

const say = (line) => process.stderr.write(`${line}\n`);
const local = (port) => `http://127.0.0.1:${port}`;

/** Runs one part and prints its duration. */
async function step(title, work) {
  const began = Date.now();
  try {
    const result = await work();
    say(`✔ ${title} ${seconds(began)}`);
    return result;
  } catch (error) {
    say(`✘ ${title} ${seconds(began)}`);
    throw error;
  }
}

/** Creates an empty database. Its role owns it and has no other rights. */
async function createDatabase(server) {
  const password = randomBytes(12).toString('hex');
  const admin = async (...statements) => {
    const client = new pg.Client({ connectionString: server });
    await client.connect();
    for (const statement of statements) await client.query(statement);
    await client.end();
  };
  cleanups.push(() => admin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`, `DROP ROLE IF EXISTS ${name}`));
  await admin(`CREATE ROLE ${name} LOGIN PASSWORD '${password}'`, `CREATE DATABASE ${name} OWNER ${name}`);
  const url = new URL(server);
  Object.assign(url, { username: name, password, pathname: `/${name}` });
  return url.href;
}

/** Builds the tree, finds the servers, and creates the database, folders and secrets of this run. */
async function prepare() {
  const scratch = temporaryFolder();
  const { app, built } = await step('the tree', () => buildTree());
  say(`${built.length > 0 ? `built: ${built.join(', ')}` : 'unchanged: no input has changed'}`);
  const there = join(scratch, 'app');
  cleanups.push(() => remove(there));
  const place = { app: placeTree(app, there), node: nodeOf(scratch), scratch };
  const config = declareSpy(place);
  const { database } = await findDatabase({ durable: true });
  const redis = await findRedis();
  const prefix = name.replaceAll('_', '-');
  cleanups.push(() => dropKeys(redis, prefix));
  say(`  PostgreSQL ${withoutPassword(database)} · Redis ${withoutPassword(redis)} · database ${name}`);
  const secrets = {
    'database-url': await createDatabase(database),
    'redis-url': redis,
    'a2a-secret': randomBytes(36).toString('base64'),
    'encryption-key': randomBytes(32).toString('base64'),
    'admin-password': randomBytes(12).toString('hex'),
  };
  const ports = {
    api: await freePort(),
    worker: await freePort(),
    grpc: await freePort(),
    metrics: await freePort(),
    workerMetrics: await freePort(),
  };
  return { place, ports, secrets, prefix, config, chart: chartCommands({ secrets, url: local(ports.api) }) };
}

/** Writes a configuration that allows one program, an MCP server that tries to read files of other processes. */
function declareSpy({ node, scratch }) {
  const program = join(scratch, 'spy.mjs');
  copyFileSync(join(root, 'test', 'support', 'stubs', 'stdio-upstream.mjs'), program);
  const file = join(scratch, 'rialto.config.json');
  const spy = { name: 'spy', command: node, args: [program], limits: { memoryMb: 2_048, processes: 200 } };
  writeFileSync(file, JSON.stringify({ stdioCommands: [spy] }));
  for (const one of [program, file]) chmodSync(one, 0o644);
  return file;
}

/**
 * Returns the commands of the chart with the changes of this run: local addresses, and limits that a fast test does not
 * reach.
 */
function commandsOf({ chart, ports, prefix, config }) {
  const here = {
    RIALTO_PUBLIC_URL: local(ports.api),
    RIALTO_QUEUE_PREFIX: prefix,
    RIALTO_CONFIG_FILE: config,
    RIALTO_OUTBOUND_ALLOW: '127.0.0.0/8',
    RIALTO_RATE_LIMIT_PRINCIPAL: '1000000',
    RIALTO_RATE_LIMIT_ORG: '1000000',
  };
  const api = { PORT: String(ports.api), METRICS_PORT: String(ports.metrics), GRPC_PORT: String(ports.grpc) };
  const worker = { PORT: String(ports.worker), METRICS_PORT: String(ports.workerMetrics) };
  return {
    ...chart,
    api: { ...chart.api, env: { ...chart.api.env, ...here, ...api } },
    worker: { ...chart.worker, env: { ...chart.worker.env, ...here, ...worker } },
    doctor: { ...chart.doctor, env: { ...chart.doctor.env, ...here, ...api } },
  };
}

/** Throws when the chart runs the image as another user than the image declares. */
function requireUser({ uid, gid }) {
  if (uid === runtime.uid && gid === runtime.gid) return;
  throw new Error(`the chart runs as ${uid}:${gid}, the image as ${runtime.uid}:${runtime.gid}`);
}

/** Starts API and worker and waits until both are ready. */
async function startGateways({ place }, commands) {
  for (const role of ['api', 'worker']) running.push(start(place, role, commands[role]));
  await Promise.all(running.map(becomesReady));
  return Object.fromEntries(running.map((started) => [started.name, started]));
}

/** Returns the variables that tell the specs where the processes run. */
function testEnvironment({ ports, secrets }, token, processes, commands) {
  return {
    NODE_ENV: 'test',
    RIALTO_TEST_URL: local(ports.api),
    RIALTO_TEST_TOKEN: token,
    RIALTO_TEST_SECRET: secrets['a2a-secret'],
    RIALTO_TEST_ADMIN_PASSWORD: secrets['admin-password'],
    RIALTO_TEST_WORKER_URL: local(ports.worker),
    RIALTO_TEST_METRICS_URL: local(ports.metrics),
    RIALTO_TEST_WORKER_METRICS_URL: local(ports.workerMetrics),
    RIALTO_TEST_GRPC: `127.0.0.1:${ports.grpc}`,
    RIALTO_TEST_API_PID: String(processes.api.child.pid),
    RIALTO_TEST_API_GRACE_SECONDS: String(commands.graceSeconds.api),
  };
}

/**
 * Runs Jest. Throws when it fails.
 * @param args selects the specs.
 */
async function specs(env, ...args) {
  const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
  const code = await run(process.execPath, [jest, '--selectProjects', 'shipped', ...args], {
    env: { ...process.env, ...env },
  });
  if (code !== 0) throw new Error(`Jest ended with ${code}`);
}

/** A program that tries to write to files that must be read-only. It exits with 1 when a write succeeds. */
const trespass = `
import { appendFileSync } from 'node:fs';
for (const file of ['planted', 'dist/src/planted', 'node_modules/planted', 'dist/src/main.js', 'package.json']) {
  let outcome = 'written to';
  try { appendFileSync(file, ''); } catch (error) { outcome = error.code; }
  if (outcome === 'EACCES') continue;
  console.log(file + ': ' + outcome);
  process.exitCode = 1;
}`;

/**
 * A program that starts a child, which tries to read the memory and environment of its parent. It exits with 1 when
 * that succeeds.
 */
const pry = `
import { execFileSync } from 'node:child_process';
const tries = "for (const name of ['mem', 'environ']) " +
  "try { require('node:fs').openSync('/proc/' + process.ppid + '/' + name); console.log(name) } catch {}";
const read = execFileSync(process.execPath, ['-e', tries], { encoding: 'utf8' });
if (read) { console.log('could be read: ' + read); process.exitCode = 1; }`;

/** Stores the first policy of a production org, so that members may do everything that is not forbidden. */
async function permitMembers({ ports }, token) {
  const response = await fetch(`${local(ports.api)}/api/policies`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'members', text: 'permit(principal, action, resource);' }),
  });
  if (response.status !== 201)
    throw new Error(`the first policy was refused: ${response.status} ${await response.text()}`);
}

/** Runs the doctor with the token of an admin. Throws when a check fails or is skipped. */
async function doctor({ place }, commands, token) {
  const { args, env } = commands.doctor;
  const command = { args: [...args, '--json'], env: { ...env, RIALTO_TOKEN: token } };
  const { out } = await finish(place, 'doctor', command);
  const open = JSON.parse(out).checks.filter(({ status }) => status !== 'ok');
  if (open.length > 0) throw new Error(`rialto doctor skipped checks:\n${JSON.stringify(open, null, 2)}`);
}

const isFault = (line) => /^\{"level":"(error|fatal)"/.test(line);
const isUnexpected = (line) => line !== '' && !/^(SIGTERM: draining$|waiting for running work)/.test(line);

/**
 * Stops a process with SIGTERM. Throws when it does not end with 0 within the grace period, or when it logged errors or
 * left files.
 */
async function stop(started, graceSeconds) {
  const began = Date.now();
  started.child.kill('SIGTERM');
  const timer = setTimeout(() => started.child.kill('SIGKILL'), graceSeconds * 1_000);
  const code = await started.ended;
  clearTimeout(timer);
  if (code !== 0) throw new Error(`${started.name} ended with ${code} after ${seconds(began)}:\n${wrote(started)}`);
  const faults = [...started.out.split('\n').filter(isFault), ...started.err.split('\n').filter(isUnexpected)];
  if (faults.length > 0) throw new Error(`${started.name} wrote:\n${faults.join('\n')}`);
  const left = readdirSync(started.temporary);
  if (left.length > 0) throw new Error(`${started.name} left in its temporary folder: ${left.join(', ')}`);
}

/** Runs all steps. Throws at the first failure. */
async function test() {
  const user = isRoot ? `user ${runtime.uid}` : 'not root: runs as the current user, who owns the tree';
  say(`Node ${process.version}, ${user}`);
  const ship = await prepare();
  const { place } = ship;
  const before = listing(place.app);
  const commands = commandsOf(ship);
  requireUser(commands.user);
  await step('chart: migration', () => finish(place, 'migrate', commands.migrate));
  await step('chart: db wait', () => finish(place, 'wait', commands.wait));
  const admin = 'dist/src/cli.js token --org default --sub shipped --role admin --ttl 1h --create'.split(' ');
  const { out } = await step('a token', () => finish(place, 'token', { args: admin, env: commands.api.env }));
  const token = out.trim();
  const processes = await step('api and worker', () => startGateways(ship, commands));
  await step('check: nothing is writable', () =>
    finish(place, 'trespass', { args: ['--input-type=module', '-e', trespass] }),
  );
  if (isRoot)
    await step('check: no process of the same user reads the memory', () =>
      finish(place, 'pry', { args: ['--input-type=module', '-e', pry] }),
    );
  await step('the first policy', () => permitMembers(ship, token));
  const env = testEnvironment(ship, token, processes, commands);
  const given = process.argv.slice(2);
  await step('specs', () => specs(env, '--testPathIgnorePatterns', 'stop.spec.ts', ...given));
  await step('chart: helm test ready', () => finish(place, 'ready', commands.ready));
  await step('chart: helm test doctor', () => finish(place, 'doctor', commands.doctor));
  await step('rialto doctor with a token', () => doctor(ship, commands, token));
  await step('stop of api, with an open stream', async () => {
    await specs(env, '--testPathPatterns', 'stop.spec.ts');
    await stop(processes.api, commands.graceSeconds.api);
  });
  await step('stop of worker', () => stop(processes.worker, commands.graceSeconds.worker));
  const written = differences(before, listing(place.app));
  if (written.length > 0) {
    forgetTree();
    throw new Error(`the tree was written to:\n${written.slice(0, 20).join('\n')}`);
  }
}

/** Saves the output of each process, for the analysis of a failure. */
function keepLogs() {
  const folder = join(root, '.cache', 'shipped', 'logs');
  mkdirSync(folder, { recursive: true });
  for (const { name: role, out, err } of running) writeFileSync(join(folder, `${role}.log`), out + err);
  if (running.length > 0) say(`Logs: ${folder}`);
}

let cleaning;

/** Ends all running processes and removes everything that this run created. Later calls wait for the first one. */
const cleanUp = () => (cleaning ??= endAll());

async function endAll() {
  for (const { child } of running) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
  await Promise.allSettled(running.map(({ ended }) => ended));
  for (const one of cleanups.splice(0).reverse()) {
    try {
      await one();
    } catch (error) {
      say(error.message);
    }
  }
}

await setUp();
const began = Date.now();
let code = 1;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.on(signal, () => void cleanUp().then(() => process.exit(1)));
try {
  await test();
  code = 0;
} catch (error) {
  say(error.message);
  keepLogs();
}
await cleanUp();
say(`${code === 0 ? '✔' : '✘'} shipped ${seconds(began)}`);
process.exit(code);
