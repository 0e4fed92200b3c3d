import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, closeSync, cpSync, existsSync, mkdirSync, openSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { chooseAccount, type EmbeddedAccount } from '../../../src/platform/database/embedded-account.js';
import { findEmbeddedBinaries, type EmbeddedBinaries } from '../../../src/platform/database/embedded-binaries.js';
import {
  bareEnvironment,
  clusterFiles,
  makeFolder,
  prepareCluster,
  readPassword,
  type ClusterFiles,
} from '../../../src/platform/database/embedded-cluster.js';
import { ofTheRun } from '../leftovers.js';

/**
 * Ports below the range that the system uses for outgoing connections. Such a connection could take a port while its
 * server is down.
 */
const ports = { from: 20_000, count: 10_000 };

/** Returns a free port of the loopback interface that stays free while its server restarts. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = ports.from + Math.floor(Math.random() * ports.count);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((done) => server.close(done));
    return port;
  }
}

/**
 * A PostgreSQL server for one run, on one port for its whole life. It uses the programs of the system, else the
 * embedded ones.
 */
export class Postgres {
  private child?: ChildProcess;

  private constructor(
    readonly origin: string,
    private readonly files: ClusterFiles,
    private readonly programs: EmbeddedBinaries,
    private readonly account: EmbeddedAccount,
    private readonly port: number,
  ) {}

  static async start(folder: string): Promise<Postgres> {
    const files = clusterFiles(folder);
    makeFolder(files);
    const system = systemPrograms();
    const programs = system ?? findEmbeddedBinaries();
    const account = chooseAccount(programs.postgres, files.folder);
    await prepareCluster(files, programs, account);
    const version = execFileSync(programs.postgres, ['--version'], { encoding: 'utf8' }).trim();
    const origin = `${version}${system ? '' : ' (embedded programs, no system PostgreSQL was found)'}`;
    const server = new Postgres(origin, files, programs, account, await freePort());
    await server.up();
    return server;
  }

  /**
   * Starts a hot standby that replicates another server, from a copy of its files. The other server is down for a
   * moment.
   */
  static async standbyOf(primary: Postgres, folder: string): Promise<Postgres> {
    const files = clusterFiles(folder);
    makeFolder(files);
    await primary.stop();
    execFileSync('cp', ['-a', `${primary.files.folder}/.`, files.folder]);
    appendFileSync(
      join(files.data, 'postgresql.auto.conf'),
      `primary_conninfo = 'host=127.0.0.1 port=${primary.port} user=rialto password=${readPassword(files)}'\n`,
    );
    cpSync(join(files.data, 'PG_VERSION'), join(files.data, 'standby.signal'));
    await primary.up();
    const account = chooseAccount(primary.programs.postgres, files.folder);
    const standby = new Postgres(primary.origin, files, primary.programs, account, await freePort());
    await standby.up();
    return standby;
  }

  /** Promotes this standby when it has replayed everything that the other server has written. */
  async takeOver(before: Postgres): Promise<void> {
    await before.demote();
    const [last] = await before.rows<{ written: string }>('select pg_current_wal_lsn() as written');
    const replayed = async (): Promise<void> => {
      const [row] = await this.rows(`select where pg_last_wal_replay_lsn() >= '${last!.written}'`);
      if (!row) throw new Error('the standby is behind');
    };
    await until(replayed, 'the standby', this.child!);
    await this.rows('select pg_promote()');
  }

  /** Refuses new writes; connections stay open. */
  private async demote(): Promise<void> {
    await this.rows('alter system set default_transaction_read_only = on');
    await this.rows('select pg_reload_conf()');
  }

  private async rows<Row extends object>(text: string): Promise<Row[]> {
    return this.asAdmin(async (client) => (await client.query<Row>(text)).rows);
  }

  urlOf(database: string): string {
    return `postgres://rialto:${readPassword(this.files)}@127.0.0.1:${this.port}/${database}`;
  }

  /** Creates a database, as a copy of `template` when given. */
  async create(database: string, template?: string): Promise<string> {
    await this.asAdmin((client) =>
      client.query(`create database "${database}"${template === undefined ? '' : ` template "${template}"`}`),
    );
    return this.urlOf(database);
  }

  async drop(database: string): Promise<void> {
    await this.asAdmin((client) => client.query(`drop database if exists "${database}" with (force)`));
  }

  async up(): Promise<void> {
    const { data, folder } = this.files;
    const flags = ['-D', data, '-h', '127.0.0.1', '-p', String(this.port), '-k', '', '-c', 'max_connections=300'];
    const { command, args, uid, gid } = this.account.wrap(this.programs.postgres, flags);
    const log = openSync(this.files.log, 'a', 0o600);
    const options = { uid, gid, cwd: folder, env: bareEnvironment(), detached: true } as const;
    this.child = ofTheRun(spawn(command, args, { ...options, stdio: ['ignore', log, log] }));
    closeSync(log);
    await until(() => this.asAdmin((client) => client.query('select 1')), 'PostgreSQL', this.child);
  }

  /** Stops like `pg_ctl stop -m immediate`: all work is dropped, and the next start recovers from the log. */
  async crash(): Promise<void> {
    await end(this.child, 'SIGQUIT');
  }

  async stop(): Promise<void> {
    await end(this.child, 'SIGINT');
  }

  private async asAdmin<Result>(work: (client: pg.Client) => Promise<Result>): Promise<Result> {
    const client = new pg.Client({ connectionString: this.urlOf('postgres'), connectionTimeoutMillis: 5_000 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return await work(client);
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}

/** A Redis server for one run, in memory only: a kill destroys its data. */
export class Redis {
  private child?: ChildProcess;

  private constructor(
    readonly port: number,
    private readonly folder: string,
  ) {}

  /** Starts a server; undefined when this machine has no redis-server. */
  static async start(folder: string): Promise<Redis | undefined> {
    if (!isInstalled('redis-server')) return undefined;
    mkdirSync(folder, { recursive: true });
    const server = new Redis(await freePort(), folder);
    await server.up();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  async up(): Promise<void> {
    const flags = ['--port', String(this.port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
    this.child = ofTheRun(spawn('redis-server', [...flags, '--dir', this.folder], { stdio: 'ignore', detached: true }));
    await until(() => this.command('PING'), 'Redis', this.child);
  }

  /** Kills the server, which loses all data. */
  async kill(): Promise<void> {
    await end(this.child, 'SIGKILL');
  }

  freeze(): void {
    this.child?.kill('SIGSTOP');
  }

  thaw(): void {
    this.child?.kill('SIGCONT');
  }

  async command(...words: string[]): Promise<void> {
    const { Redis: Client } = await import('ioredis');
    const client = new Client(this.url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null });
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.call(words[0]!, ...words.slice(1));
    } finally {
      client.disconnect();
    }
  }
}

function systemPrograms(): EmbeddedBinaries | undefined {
  const versions = '/usr/lib/postgresql';
  const found = existsSync(versions) ? readdirSync(versions) : [];
  const best = found
    .map(Number)
    .filter(Boolean)
    .sort((a, b) => b - a)[0];
  const program = (name: string): string => join(versions, String(best), 'bin', name);
  if (best === undefined || !existsSync(program('initdb'))) return undefined;
  return { initdb: program('initdb'), postgres: program('postgres'), pgCtl: program('pg_ctl') };
}

function isInstalled(program: string): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

async function until(answers: () => Promise<unknown>, name: string, child: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 1_000; tries++) {
    const answered = await answers().then(
      () => true,
      () => false,
    );
    if (answered) return;
    if (child.exitCode !== null || child.signalCode !== null) break;
    await sleep(30);
  }
  throw new Error(`${name} did not start`);
}

async function end(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
}
