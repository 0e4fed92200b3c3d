import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { publish, rpc, userMessage } from '../support/clients/a2a.js';
import { createTestDatabase, type TestDatabase } from '../support/gateway/database.js';
import { eventually } from '../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway/gateway.js';
import { freePort, isInstalled } from '../support/gateway/services.js';
import { keepsStatements } from '../../src/platform/database/pool-client.js';

const withPooler = isInstalled('pgbouncer') ? describe : describe.skip;

withPooler('PgBouncer before the database (R7)', () => {
  let database: TestDatabase;
  let folder: string;
  const poolers: ChildProcess[] = [];

  beforeAll(async () => {
    database = await createTestDatabase('pooler');
    folder = mkdtempSync(join(tmpdir(), 'rialto-pooler-'));
    chmodSync(folder, 0o755);
  });
  afterAll(async () => {
    for (const pooler of poolers) pooler.kill('SIGKILL');
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  const start = async (mode: 'transaction' | 'session'): Promise<string> => {
    const port = await freePort();
    const { hostname, port: serverPort, searchParams, username, password } = new URL(database.url);
    const host = searchParams.get('host') ?? hostname;
    const file = join(folder, `${mode}.ini`);
    writeFileSync(join(folder, 'users'), `"${decodeURIComponent(username)}" "${decodeURIComponent(password)}"\n`);
    const settings = [
      '[databases]',
      `* = host=${host} port=${serverPort || '5432'}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${port}`,
      'auth_type = trust',
      `auth_file = ${folder}/users`,
      `pool_mode = ${mode}`,
      'unix_socket_dir =',
      'ignore_startup_parameters = extra_float_digits,statement_timeout,options,application_name',
    ];
    writeFileSync(file, `${settings.join('\n')}\n`);
    const user = process.getuid?.() === 0 ? ['-u', 'postgres'] : [];
    poolers.push(spawn('pgbouncer', ['-q', ...user, file], { stdio: 'ignore' }));
    const answers = (): Promise<boolean> =>
      new Promise((done) => {
        const socket = createConnection(port, '127.0.0.1', () => done((socket.destroy(), true)));
        socket.on('error', () => done(false));
      });
    await eventually(answers, (isUp) => isUp);
    const url = new URL(database.url);
    url.searchParams.delete('host');
    url.hostname = '127.0.0.1';
    url.port = String(port);
    return url.href;
  };

  it('statements keep their names behind a session pooler and without a pooler', async () => {
    expect(await keepsStatements(await start('session'))).toBe(true);
    expect(await keepsStatements(database.url)).toBe(true);
  });

  it('in transaction mode: every send succeeds, the queue works, and the chain verifies', async () => {
    const url = await start('transaction');
    expect(await keepsStatements(url)).toBe(false);
    const same = { database, dataDir: join(folder, 'data') } as TestGateway;
    const gateway = await startTestGateway(
      { DATABASE_URL: url, RIALTO_DATABASE_DIRECT_URL: database.url, REDIS_URL: '' },
      same,
    );
    try {
      await publish(gateway);
      const sends = Array.from({ length: 120 }, (_, index) =>
        rpc(gateway, 'SendMessage', {
          message: userMessage(`pooled ${index}`),
          configuration: { returnImmediately: index % 3 === 0 },
        }),
      );
      const ids = (await Promise.all(sends)).map(({ task }) => task.id as string);
      await eventually(
        () => gateway.sql(`select id from a2a_tasks where id = any($1) and status_state = 'completed'`, [ids]),
        ({ length }) => length === ids.length,
      );
      const { status, body } = await gateway.call('POST', '/api/audit/verify');
      expect([status, body.valid]).toEqual([200, true]);
    } finally {
      await gateway.close();
    }
  });
});
