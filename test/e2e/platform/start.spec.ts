import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Client } from 'pg';
import { rialto } from '../../support/gateway/cli.js';
import { eventually } from '../../support/gateway/eventually.js';
import { testSecret } from '../../support/gateway/gateway.js';
import { keepPostgres, type KeptPostgres } from '../../support/gateway/keeper.js';
import { processesBelow, startProcess, type Ended, type GatewayProcess } from '../../support/gateway/process.js';
import { freePort } from '../../support/gateway/services.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { data, slow } from '../../support/stubs/stub-behaviours.js';

const encryptionKey = randomBytes(32).toString('base64');
const folders: string[] = [];
const running = new Set<GatewayProcess>();

/** A durable server, as production demands. */
let server: KeptPostgres;
let taken: Server;
let agent: StubAgent | undefined;

beforeAll(async () => {
  server = await keepPostgres(newFolder());
  taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
});

afterEach(async () => {
  for (const { child, ended } of running) {
    if (child.exitCode === null) child.kill('SIGINT');
    await ended;
  }
  running.clear();
  await agent?.down();
  agent = undefined;
});

afterAll(async () => {
  taken.close();
  await server.stop();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rialto-start-'));
  chmodSync(folder, 0o755); // the database may run under an account that has no access to the folder
  folders.push(folder);
  return folder;
}

function start(env: Record<string, string | undefined>, account = {}): GatewayProcess {
  const gateway = startProcess({ RIALTO_DATA_DIR: newFolder(), ...env }, account);
  running.add(gateway);
  return gateway;
}

const takenPort = (): string => String((taken.address() as AddressInfo).port);
/** Starts a server that accepts connections, and demands a password. */
const refusingRedis = async (): Promise<number> => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (commands) => {
      for (const _ of commands.toString().matchAll(/^\*\d+/gm)) socket.write('-NOAUTH Authentication required.\r\n');
    });
  }).unref();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
};
const withDatabase = (url: string, change: (url: URL) => void): string => {
  const changed = new URL(url);
  change(changed);
  return changed.href;
};

/** Expects exit code 1 with exactly these lines. */
function expectRefusal(end: Ended, lines: readonly (string | RegExp)[]): void {
  expect(end.stderr).toEqual(
    lines.map((line) => (typeof line === 'string' ? `rialto: ${line}` : expect.stringMatching(line))),
  );
  expect(end.stderr.join('\n')).not.toMatch(/^\s+at /m);
  expect(end.stdout).toBe('');
  expect(end.code).toBe(1);
}

/** A slow machine may also log that it waits. */
function expectStopped({ code, stderr }: Ended, signal: string): void {
  const [first, ...others] = stderr;
  expect([code, first]).toEqual([0, `${signal}: draining`]);
  expect(others.filter((line) => !line.startsWith('waiting for running work'))).toEqual([]);
}

async function sql(url: string, ...statements: string[]): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}

/** Returns the URL of a database without the tables of the gateway. */
async function emptyDatabase(): Promise<string> {
  const name = `empty_${randomBytes(5).toString('hex')}`;
  await sql(server.url, `create database ${name}`);
  return withDatabase(server.url, (url) => (url.pathname = `/${name}`));
}

async function postJson(url: string, token: string, body: unknown): Promise<any> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).json();
}

describe('a failed start prints one line, names the setting and exits with 1', () => {
  const refusals: Record<
    string,
    [() => Record<string, string | undefined> | Promise<Record<string, string>>, (string | RegExp)[]]
  > = {
    'PORT is taken': [() => ({ PORT: takenPort() }), [/PORT: \d+ is in use; choose another, 0 takes a free one/]],
    'METRICS_PORT is taken': [
      () => ({ METRICS_PORT: takenPort() }),
      [/METRICS_PORT: \d+ is in use; choose another, or 0 for none/],
    ],
    'HOST is elsewhere': [() => ({ HOST: '192.0.2.1' }), ['PORT: HOST is not an address of this machine']],
    'the database is down': [
      async () => ({ DATABASE_URL: `postgres://rialto@127.0.0.1:${await freePort()}/rialto` }),
      ['DATABASE_URL: the server cannot be reached (ECONNREFUSED)'],
    ],
    'the database does not exist': [
      () => ({ DATABASE_URL: withDatabase(server.url, (url) => (url.pathname = '/nowhere')) }),
      ['DATABASE_URL: the database does not exist'],
    ],
    'the database has no name that resolves': [
      () => ({ DATABASE_URL: 'postgres://rialto@nowhere.invalid/rialto' }),
      [/^rialto: DATABASE_URL: the server cannot be reached \((ENOTFOUND|EAI_AGAIN)\)$/],
    ],
    'Redis refuses': [
      async () => ({ REDIS_URL: `redis://127.0.0.1:${await refusingRedis()}` }),
      ['REDIS_URL: the server refuses access (NOAUTH Authentication required.)'],
    ],
    'the secret is short': [
      () => ({ A2A_SECRET: 'short' }),
      ['A2A_SECRET must be at least 32 bytes; make one with `openssl rand -base64 48`'],
    ],
    'several settings are wrong': [
      () => ({ A2A_SECRET: 'short', PORT: 'x', RIALTO_ROLL: 'api' }),
      [/PORT /, /A2A_SECRET /, 'RIALTO_ROLL is not a setting; did you mean RIALTO_ROLE?'],
    ],
    'the allow list is nonsense': [
      () => ({ RIALTO_OUTBOUND_ALLOW: '10.0.0.0/99' }),
      [/^rialto: RIALTO_OUTBOUND_ALLOW/],
    ],
    'a secret is given twice, and the file of another is missing': [
      () => ({ A2A_SECRET: testSecret, A2A_SECRET_FILE: '/dev/null', REDIS_URL_FILE: '/nowhere' }),
      [
        'A2A_SECRET and A2A_SECRET_FILE are both set; unset one of them',
        'REDIS_URL_FILE names a file that cannot be read (ENOENT)',
        /^rialto: A2A_SECRET is empty/,
      ],
    ],
    'the identity providers are nonsense': [() => ({ RIALTO_JWKS: 'acme' }), [/^rialto: RIALTO_JWKS/]],
    'the data folder cannot be created': [
      () => ({ RIALTO_DATA_DIR: '/dev/null/rialto' }),
      [/^rialto: RIALTO_DATA_DIR/],
    ],
    'production lacks what it needs': [
      () => ({ NODE_ENV: undefined, DATABASE_URL: undefined }),
      [/^rialto: RIALTO_ENCRYPTION_KEY is required/, /^rialto: DATABASE_URL is required/],
    ],
  };

  it.each(Object.keys(refusals))('%s', async (name) => {
    const [env, lines] = refusals[name]!;
    expectRefusal(await start({ DATABASE_URL: server.url, ...(await env()) }).ended, lines);
  });

  const firstFree = Number(readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8').trim() || '1024');
  const isRoot = process.getuid?.() === 0;

  (firstFree > 81 ? it : it.skip)('PORT needs administrator rights', async () => {
    const dataDir = newFolder();
    if (isRoot) chownSync(dataDir, 65_534, 65_534);
    const byTcp = withDatabase(server.url, (url) => (url.search = '')); // the socket belongs to the test account
    const env = { DATABASE_URL: byTcp, PORT: '81', RIALTO_DATA_DIR: dataDir };
    const { ended } = start(env, isRoot ? { uid: 65_534, gid: 65_534 } : {});
    expectRefusal(await ended, ['PORT: this user may not open 81']);
  });

  (isRoot ? it : it.skip)('a program has a limit that cannot be enforced', async () => {
    const file = join(newFolder(), 'rialto.config.json');
    const stdioCommands = [{ name: 'files', command: process.execPath, limits: { processes: 5 } }];
    writeFileSync(file, JSON.stringify({ stdioCommands }));
    expectRefusal(await start({ DATABASE_URL: server.url, RIALTO_CONFIG_FILE: file }).ended, [
      'stdioCommands: the processes of files cannot be limited while they run as root; set RIALTO_STDIO_USER',
    ]);
  });

  it('a migration fails', async () => {
    const DATABASE_URL = await emptyDatabase();
    await sql(DATABASE_URL, 'create table orgs (mine int)');
    expectRefusal(await start({ DATABASE_URL }).ended, [
      'DATABASE_URL: a migration failed: relation "orgs" already exists',
    ]);
  });

  it('production does not migrate by itself', async () => {
    const DATABASE_URL = await emptyDatabase();
    const env = { NODE_ENV: 'production', DATABASE_URL, RIALTO_ENCRYPTION_KEY: encryptionKey };
    expectRefusal(await start(env).ended, [
      /^rialto: DATABASE_URL: the schema is behind \(0 of \d+ migrations\); run `rialto db migrate` first$/,
    ]);
  });

  it('the password is wrong, and is not repeated', async () => {
    const DATABASE_URL = withDatabase(server.url, (url) => (url.password = 'wrong-CANARY'));
    expectRefusal(await start({ DATABASE_URL }).ended, ['DATABASE_URL: the server refused the user or the password']);
  });

  it('the user may not create tables', async () => {
    const empty = await emptyDatabase();
    await sql(server.url, `create role guest login password 'guest'`);
    const DATABASE_URL = withDatabase(empty, (url) => ((url.username = 'guest'), (url.password = 'guest')));
    expectRefusal(await start({ DATABASE_URL }).ended, [
      'DATABASE_URL: the user may not create tables in this database',
    ]);
  });

  it('there are too few connections', async () => {
    const small = await keepPostgres(newFolder(), { max_connections: '20' });
    const end = await start({ DATABASE_URL: small.url }).ended;
    await small.stop();
    expectRefusal(end, ['DATABASE_URL: the server offers 20 connections (max_connections), at least 30 are needed']);
  });
});

describe('a process on the embedded database', () => {
  it('waits for running tasks at a stop, and logs it; a second signal ends it; the next start continues', async () => {
    const env = { RIALTO_DATA_DIR: newFolder() };
    const first = start(env);
    const url = await first.ready;
    const token = readFileSync(join(env.RIALTO_DATA_DIR, 'token'), 'utf8').trim();
    const executor = { kind: 'echo', delayMs: 600_000 };
    await postJson(`${url}/api/a2a/published`, token, { name: 'slow', description: 'x', executor, a2a_enabled: true });
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] };
    const sent = postJson(`${url}/a2a/agents/slow/message:send`, token, { message }).catch(() => undefined);
    const headers = { authorization: `Bearer ${token}` };
    await eventually(
      async () => (await fetch(`${url}/api/a2a/tasks`, { headers })).text(),
      (tasks) => tasks.includes('"working"'),
    );
    first.child.kill('SIGINT');
    first.child.kill('SIGINT'); // a terminal and npm send the same one twice
    await first.said('waiting for running work');
    await wait(100);
    expect(first.child.exitCode).toBeNull();
    first.child.kill('SIGINT');
    expect(await first.ended).toMatchObject({
      code: 1,
      stderr: ['SIGINT: draining', 'waiting for running work, at most 25 s; SIGINT again ends the process at once'],
    });
    await sent;
    const second = start(env);
    expect(await second.ready).toMatch(/^http/);
    second.child.kill('SIGINT');
    await wait(1_500);
    second.child.kill('SIGINT');
    await second.ended;
  });

  it('ends in time when a part of it does not stop', async () => {
    const env = { RIALTO_DATA_DIR: newFolder() };
    const one = start(env, { imports: [join(process.cwd(), 'test', 'support', 'gateway', 'stuck-stop.mjs')] });
    await one.ready;
    one.child.kill('SIGTERM');
    expect(await one.ended).toMatchObject({
      code: 1,
      stderr: ['SIGTERM: draining', 'some parts did not stop in time; the process ends without them'],
    });
  });

  it('keeps its data over SIGINT and kill -9, refuses a second process, and leaves none behind', async () => {
    const dataDir = newFolder();
    const env = { RIALTO_DATA_DIR: dataDir };

    const first = start(env);
    const url = await first.ready;
    const token = readFileSync(join(dataDir, 'token'), 'utf8').trim();
    expect(await postJson(`${url}/api/orgs`, token, { slug: 'kept' })).toMatchObject({ slug: 'kept' });
    expect(processesBelow(dataDir).length).toBeGreaterThan(0);

    expectRefusal(await start(env).ended, [
      `process ${first.child.pid} already uses this data folder; set RIALTO_DATA_DIR to another folder`,
    ]);

    first.child.kill('SIGINT');
    expectStopped(await first.ended, 'SIGINT');
    expect(processesBelow(dataDir)).toEqual([]);
    expect(readFileSync(join(dataDir, 'token'), 'utf8').trim()).toBe(token);

    const killed = start(env);
    await expectKept(await killed.ready, token);
    killed.child.kill('SIGKILL');
    await killed.ended;

    const third = start(env);
    await expectKept(await third.ready, token);
    third.child.kill('SIGTERM');
    expectStopped(await third.ended, 'SIGTERM');
    expect(processesBelow(dataDir)).toEqual([]);
  });

  async function expectKept(url: string, token: string): Promise<void> {
    const response = await fetch(`${url}/api/orgs/kept`, { headers: { authorization: `Bearer ${token}` } });
    expect(await response.json()).toMatchObject({ slug: 'kept' });
  }
});

describe('a process on an external database', () => {
  it('finishes the current call when it is stopped', async () => {
    agent = await startStubAgent({ name: 'Stub', behaviour: slow(1_500, data({ done: true })) });
    const dataDir = newFolder();
    const { child, ready, ended } = start({ DATABASE_URL: server.url, RIALTO_DATA_DIR: dataDir });
    const url = await ready;
    const token = readFileSync(join(dataDir, 'token'), 'utf8').trim();
    const { skills } = await postJson(`${url}/api/a2a/agents`, token, { url: agent.url });
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: skills[0].toolName, arguments: {} } };
    const answer = postJson(`${url}/mcp`, token, call);
    await agent.waitForRequests(1);
    child.kill('SIGTERM');
    expect((await answer).result.isError).not.toBe(true);
    expect((await ended).code).toBe(0);
  });

  it('AN-46, N14, P20: a production process without a secret starts and logs that; its doors answer 503', async () => {
    const { ready, child, ended } = start({
      NODE_ENV: undefined,
      HOST: '0.0.0.0',
      DATABASE_URL: server.url,
      RIALTO_ENCRYPTION_KEY: encryptionKey,
    });
    const url = await ready;
    expect((await fetch(`${url}/livez`)).status).toBe(200);
    const built = join(__dirname, '../../../dist/commit');
    const commit = existsSync(built) ? readFileSync(built, 'utf8').trim() : '';
    const version = (await (await fetch(`${url}/version`)).json()) as { version: string; commit?: string };
    expect(version.commit ?? '').toBe(commit);
    const readiness = await fetch(`${url}/readyz`);
    expect(readiness.status).toBe(503);
    expect(JSON.stringify(await readiness.json())).toContain('A2A_SECRET');
    for (const authorization of ['', 'Bearer x']) {
      const init = { method: 'POST', headers: { 'content-type': 'application/json', authorization }, body: '{}' };
      expect((await fetch(`${url}/mcp`, init)).status).toBe(503);
    }
    child.kill('SIGTERM');
    expect((await ended).stderr).toContainEqual(expect.stringMatching(/^rialto: A2A_SECRET is not set: .* 503/));
    const loopback = /^rialto: RIALTO_PUBLIC_URL is not set: .* loopback address, which other machines cannot reach$/;
    expect((await ended).stderr).toContainEqual(expect.stringMatching(loopback));
    expect((await ended).stdout).toContain(`  version  ${version.version}${commit && ` (${commit})`}`);
  });

  it('with a secret and a public address it is ready in production, and logs no warning', async () => {
    const DATABASE_URL = await emptyDatabase(); // the other databases have values that are sealed with their own keys
    expect((await rialto(['db', 'migrate'], { DATABASE_URL })).code).toBe(0);
    const { ready, child, ended } = start({
      NODE_ENV: 'production',
      HOST: '0.0.0.0',
      RIALTO_PUBLIC_URL: 'https://gate.example',
      DATABASE_URL,
      RIALTO_ENCRYPTION_KEY: encryptionKey,
      A2A_SECRET: testSecret,
    });
    const url = await ready;
    await eventually(
      () => fetch(`${url}/readyz`),
      ({ status }) => status === 200,
    );
    child.kill('SIGTERM');
    expectStopped(await ended, 'SIGTERM');
  });
});
