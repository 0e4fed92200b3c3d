import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { findEmbeddedBinaries } from '../../src/platform/database/embedded-binaries.js';
import { findEmbeddedPostgres, startEmbeddedPostgres } from '../../src/platform/database/embedded-postgres.js';
import type { EmbeddedPostgres } from '../../src/platform/database/embedded-postgres.js';
import { isAlive } from '../../src/platform/database/embedded-owner.js';
import { keepPostgres } from '../support/gateway/keeper.js';

describe('embedded PostgreSQL', () => {
  let seed: string;
  let dataDir: string;
  let server: EmbeddedPostgres | undefined;

  beforeAll(async () => {
    seed = makeFolder();
    await (await startEmbeddedPostgres({ dataDir: seed })).stop();
  });

  afterAll(() => rmSync(seed, { recursive: true, force: true }));

  beforeEach(() => {
    dataDir = makeFolder();
  });

  afterEach(async () => {
    await server?.stop();
    server = undefined;
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** Copies a prepared database folder, for tests that are not about the first start. */
  const useMadeFolder = (): void => cpSync(seed, dataDir, { recursive: true });
  const start = async (): Promise<EmbeddedPostgres> => (server = await startEmbeddedPostgres({ dataDir }));

  it('starts on an empty folder as PostgreSQL 18 on loopback, with a generated password', async () => {
    const { url, port, version } = await start();
    expect(url).toMatch(new RegExp(`^postgres://rialto:[0-9a-f]{48}@127\\.0\\.0\\.1:${port}/rialto(\\?host=|$)`));
    expect(version).toMatch(/^18\./);
    const [settings] = await query(
      url,
      "SELECT current_setting('max_connections') AS connections, current_database() AS name",
    );
    expect(settings).toEqual({ connections: '300', name: 'rialto' });
    expect(statSync(join(dataDir, 'pg/password')).mode & 0o777).toBe(0o600);
    expect(statSync(join(dataDir, 'pg/data')).mode & 0o077).toBe(0);
    await expect(query(url.replace(/:[0-9a-f]{48}@/, ':wrong@'), 'SELECT 1')).rejects.toThrow(
      /password authentication/,
    );
  });

  it('accepts connections by a Unix socket in its folder, and by TCP', async () => {
    useMadeFolder();
    const { url } = await start();
    const ways = 'select inet_server_addr() is null as socket';
    expect(await query(url, ways)).toEqual([{ socket: true }]);
    expect(await query(url.replace(/\?.*$/, ''), ways)).toEqual([{ socket: false }]);
    expect(findEmbeddedPostgres(dataDir)).toBe(url);
  });

  it('accepts connections by TCP when the path of a socket would be too long', async () => {
    dataDir = join(dataDir, 'x'.repeat(100));
    useMadeFolder();
    const { url } = await start();
    expect(url).not.toContain('?');
    expect(await query(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect(findEmbeddedPostgres(dataDir)).toBe(url);
  });

  it('keeps its rows over a stop and a start, and leaves no process behind', async () => {
    useMadeFolder();
    const first = await start();
    await query(first.url, 'CREATE TABLE kept AS SELECT 7 AS number');
    const open = new Client({ connectionString: first.url }); // a forgotten pool must not block the stop
    open.on('error', () => undefined);
    const cut = new Promise((done) => open.once('end', done));
    await open.connect();
    await first.stop();
    await first.stop();
    await cut;
    expect(isAlive(first.pid!)).toBe(false);
    expect(serverProcesses(dataDir)).toEqual([]);
    const second = await start();
    expect(await query(second.url, 'SELECT number FROM kept')).toEqual([{ number: 7 }]);
  });

  it('refuses a folder that a live process owns and names RIALTO_DATA_DIR', async () => {
    useMadeFolder();
    const owner = await keepPostgres(dataDir);
    try {
      await expect(startEmbeddedPostgres({ dataDir })).rejects.toMatchObject({
        code: 'conflict',
        message: expect.stringContaining('RIALTO_DATA_DIR'),
        data: { pid: owner.child.pid },
      });
      expect(await query(owner.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
      expect(findEmbeddedPostgres(dataDir)).toBe(owner.url);
    } finally {
      await owner.stop();
    }
    expect(findEmbeddedPostgres(dataDir)).toBeUndefined();
  });

  it('refuses a second start in the same process', async () => {
    useMadeFolder();
    const { url } = await start();
    await expect(startEmbeddedPostgres({ dataDir })).rejects.toMatchObject({ code: 'conflict' });
    expect(await query(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('gives the folder to exactly one of several that start together after a crash', async () => {
    useMadeFolder();
    const crashed = await keepPostgres(dataDir);
    await kill(crashed.child.pid!, crashed.child.pid!);
    const rivals = await Promise.allSettled([1, 2, 3].map(() => keepPostgres(dataDir)));
    const owners = rivals.flatMap((rival) => (rival.status === 'fulfilled' ? [rival.value] : []));
    try {
      expect(owners).toHaveLength(1);
      const refused = rivals.filter((rival) => rival.status === 'rejected');
      for (const { reason } of refused) expect(String(reason)).toContain('RIALTO_DATA_DIR');
      expect(await query(owners[0]!.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    } finally {
      await Promise.all(owners.map((owner) => owner.stop()));
    }
  });

  it('loses no committed data when its owner is killed: the orphan is stopped and a new server started', async () => {
    useMadeFolder();
    const killed = await keepPostgres(dataDir);
    await query(killed.url, 'CREATE TABLE kept AS SELECT 7 AS number');
    await kill(killed.child.pid!, killed.child.pid!);
    expect(isAlive(killed.pid)).toBe(true);
    const { url, pid } = await start();
    expect(pid).not.toBe(killed.pid);
    expect(isAlive(killed.pid)).toBe(false);
    expect(await query(url, 'SELECT number FROM kept')).toEqual([{ number: 7 }]);
  });

  it('loses no committed data when owner and server are killed together', async () => {
    useMadeFolder();
    const killed = await keepPostgres(dataDir);
    await query(killed.url, 'CREATE TABLE kept AS SELECT 7 AS number');
    await kill(killed.child.pid!, killed.child.pid!, killed.pid);
    const { url } = await start();
    expect(await query(url, 'SELECT number FROM kept')).toEqual([{ number: 7 }]);
    expect(readdirSync(join(dataDir, 'pg/data')).filter((name) => /^\.s\.PGSQL\.\d+$/.test(name))).toHaveLength(1);
  });

  it('restarts a killed server on the same port', async () => {
    useMadeFolder();
    const { url, pid } = await start();
    await query(url, 'CREATE TABLE kept AS SELECT 7 AS number');
    process.kill(pid!, 'SIGKILL');
    await eventually(async () => expect(server!.pid).not.toBe(pid));
    expect(await query(url, 'SELECT number FROM kept')).toEqual([{ number: 7 }]);
  });

  it('does not touch an unrelated process with the pid of a stale postmaster.pid', async () => {
    useMadeFolder();
    const killed = await keepPostgres(dataDir);
    await kill(killed.child.pid!, killed.child.pid!, killed.pid);
    await eventually(async () => expect(serverProcesses(dataDir)).toEqual([]));
    const file = join(dataDir, 'pg/data/postmaster.pid');
    const stranger = await keepPostgres(join(dataDir, 'other'));
    try {
      writeFileSync(file, readFileSync(file, 'utf8').replace(/^\d+/, String(stranger.pid)));
      const { url } = await start();
      expect(await query(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
      expect(await query(stranger.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    } finally {
      await stranger.stop();
    }
  });

  it('recreates an incomplete folder', async () => {
    mkdirSync(join(dataDir, 'pg/data/base'), { recursive: true });
    mkdirSync(join(dataDir, 'pg/new'));
    writeFileSync(join(dataDir, 'pg/new/PG_VERSION'), '18');
    const { url } = await start();
    expect(await query(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect(existsSync(join(dataDir, 'pg/new'))).toBe(false);
  });

  it('says in one line what to do on a platform without server programs', () => {
    const message = expect.stringMatching(/^the embedded PostgreSQL is not installed .*; set DATABASE_URL .*$/);
    expect(() => findEmbeddedBinaries('sunos', 'sparc')).toThrow(
      expect.objectContaining({ code: 'unavailable', message }),
    );
  });

  it('says in one line why the server cannot start, and releases the folder', async () => {
    const broken = startEmbeddedPostgres({ dataDir, settings: { max_connections: 'many' } });
    await expect(broken).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/many.*DATABASE_URL/),
    });
    await start();
  });

  const asRoot = process.getuid?.() === 0 ? it : it.skip;

  asRoot('works as root below a folder that only root may enter', async () => {
    chmodSync(dataDir, 0o700);
    const first = await start();
    await query(first.url, 'CREATE TABLE kept AS SELECT 7 AS number');
    await first.stop();
    chmodSync(dataDir, 0o755); // from now on the server runs under another account, which takes over the files
    const second = await start();
    expect(await query(second.url, 'SELECT number FROM kept')).toEqual([{ number: 7 }]);
  });
});

/** Creates a folder with a blank and a quote in its name, so that a missing quotation of an argument fails. */
function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "rialto embedded '"));
  chmodSync(folder, 0o755);
  return folder;
}

async function query(connectionString: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(sql)).rows as unknown[];
  } finally {
    await client.end();
  }
}

/** Kills the processes and waits until the first is gone. */
async function kill(first: number, ...pids: number[]): Promise<void> {
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  while (isAlive(first)) await sleep(5);
}

async function eventually<Result>(attempt: () => Promise<Result>): Promise<Result> {
  for (let tries = 0; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (tries === 500) throw error;
      await sleep(20);
    }
  }
}

function serverProcesses(dataDir: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(dataDir);
    } catch {
      return false;
    }
  });
}
