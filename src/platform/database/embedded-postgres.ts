import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, renameSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { chooseAccount, type EmbeddedAccount } from './embedded-account.js';
import { embeddedUnavailable, findEmbeddedBinaries, type EmbeddedBinaries } from './embedded-binaries.js';
import {
  bareEnvironment,
  clusterFiles,
  makeFolder,
  prepareCluster,
  readPassword,
  socketFolder,
} from './embedded-cluster.js';
import type { ClusterFiles } from './embedded-cluster.js';
import { readPostmaster, stopOrphan } from './embedded-orphan.js';
import { claimFolder, liveOwner } from './embedded-owner.js';

export interface EmbeddedPostgresOptions {
  /** The data folder of the product; the database lives in `pg` below it. */
  readonly dataDir: string;
  /** Receives messages for the operator, one line each. */
  readonly log?: (line: string) => void;
  /**
   * Server settings beyond the defaults, e.g. `{ fsync: 'off' }` for a database that may be lost with the machine.
   */
  readonly settings?: Readonly<Record<string, string>>;
}

type Signal = 'SIGINT' | 'SIGQUIT' | 'SIGKILL';

// WAL segments are created when they are needed. Filling each with zeros first would stop all writers for some 60 ms.
const defaults = { max_connections: '300', wal_init_zero: 'off' };
const startTimeoutMs = 120_000;
const stopTimeoutMs = 10_000;
const attempts = 20;
/**
 * Start failures that pass without help: the port was taken meanwhile, or processes of a killed server are still
 * ending.
 */
const passing = /Address already in use|could not create any TCP\/IP sockets|pre-existing shared memory|lock file "/;

/**
 * Starts the PostgreSQL server of the data folder. Creates the folder at the first start, and stops a server that an
 * earlier, killed process left running. Throws `conflict` when a live process owns the folder, `unavailable` when the
 * server cannot run on this machine.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const files = clusterFiles(options.dataDir);
  const binaries = findEmbeddedBinaries();
  const release = await takeFolder(files);
  try {
    const account = chooseAccount(binaries.postgres, files.folder);
    await stopOrphan(files.data, (pid, name) => sendSignal(binaries, pid, name));
    await prepareCluster(files, binaries, account);
    const server = new EmbeddedPostgres({ files, binaries, account, release, options });
    await server.launch();
    return server;
  } catch (error) {
    release();
    throw error;
  }
}

/**
 * Returns the URL of the embedded server that another live process runs in this data folder; undefined when there is
 * none.
 */
export function findEmbeddedPostgres(dataDir: string): string | undefined {
  const files = clusterFiles(dataDir);
  if (!existsSync(files.folder) || !liveOwner(files.folder)) return undefined;
  const postmaster = readPostmaster(files.data);
  return postmaster?.ready ? urlOf(readPassword(files), postmaster.port, postmaster.socketFolder) : undefined;
}

interface Parts {
  readonly files: ClusterFiles;
  readonly binaries: EmbeddedBinaries;
  readonly account: EmbeddedAccount;
  readonly release: () => void;
  readonly options: EmbeddedPostgresOptions;
}

/** A running server. When it dies it is started again on the same port, so that connection pools find it. */
export class EmbeddedPostgres {
  private child?: ChildProcess;
  private stopped?: Promise<void>;
  private revival?: Promise<void>;
  private chosenPort = 0;
  private serverVersion = '';
  private readonly password: string;

  constructor(private readonly parts: Parts) {
    this.password = readPassword(parts.files);
  }

  get port(): number {
    return this.chosenPort;
  }

  /** E.g. `18.4`. */
  get version(): string {
    return this.serverVersion;
  }

  /** The process id of the server. */
  get pid(): number | undefined {
    return this.child?.pid;
  }

  get url(): string {
    return this.urlAt(this.chosenPort);
  }

  private urlAt(port: number, database?: string): string {
    return urlOf(this.password, port, socketFolder(this.parts.files), database);
  }

  /** Ends every connection, stops the server and releases the data folder. May be called twice. */
  stop(): Promise<void> {
    return (this.stopped ??= this.shutDown());
  }

  /** Starts the server and waits until it answers. The port is chosen at the first start and stays the same. */
  async launch(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const port = this.chosenPort || (await freePort());
      const child = this.spawn(port);
      const failure = await this.failureOf(child);
      if (failure === undefined) return this.greetServer(child, port);
      if (attempt === attempts || !passing.test(failure))
        throw embeddedUnavailable(`did not start (${brief(failure)})`);
      await sleep(attempt * 20);
    }
  }

  private spawn(port: number): ChildProcess {
    const { files, binaries, account, options } = this.parts;
    const settings = Object.entries({ ...defaults, ...options.settings }).flatMap(([name, value]) => [
      '-c',
      `${name}=${value}`,
    ]);
    const flags = [
      '-D',
      files.data,
      '-h',
      '127.0.0.1',
      '-p',
      String(port),
      '-k',
      socketFolder(files) ?? '',
      ...settings,
    ];
    const { command, args, uid, gid } = account.wrap(binaries.postgres, flags);
    if (existsSync(files.log)) renameSync(files.log, `${files.log}.1`);
    const log = openSync(files.log, 'w', 0o600);
    // Its own process group: Ctrl-C must reach the application first, which stops the server last.
    const child = spawn(command, args, {
      uid,
      gid,
      cwd: files.folder,
      env: bareEnvironment(),
      detached: true,
      windowsHide: true,
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    child.unref();
    return child;
  }

  /** Undefined once the server accepts connections; the server's log when it ended before that. */
  private async failureOf(child: ChildProcess): Promise<string | undefined> {
    let spawnError: Error | undefined;
    child.once('error', (error) => (spawnError = error));
    for (const deadline = systemClock.now() + startTimeoutMs; systemClock.now() < deadline; await sleep(5)) {
      if (spawnError) return spawnError.message;
      if (hasEnded(child)) return readFileSync(this.parts.files.log, 'utf8');
      const postmaster = readPostmaster(this.parts.files.data);
      if (postmaster?.ready && postmaster.pid === child.pid) return undefined;
    }
    await this.endServer(child);
    return `the server was not ready within ${startTimeoutMs / 1000} s`;
  }

  private async greetServer(child: ChildProcess, port: number): Promise<void> {
    try {
      this.serverVersion = await greet(this.urlAt(port, 'postgres'));
    } catch (cause) {
      await this.endServer(child);
      throw embeddedUnavailable(`refuses a connection to its data folder (${(cause as Error).message})`, cause);
    }
    this.child = child;
    this.chosenPort = port;
    const revive = (): void => {
      if (!this.stopped) this.revival = this.revive();
    };
    if (hasEnded(child)) revive();
    else child.once('exit', revive);
  }

  private async revive(): Promise<void> {
    const { files, options } = this.parts;
    options.log?.(`the embedded PostgreSQL stopped unexpectedly and is started again (see its log: ${files.log}.1)`);
    try {
      await this.launch();
    } catch (error) {
      options.log?.(RialtoError.from(error).message);
    }
  }

  private async shutDown(): Promise<void> {
    await this.revival;
    if (this.child) await this.endServer(this.child);
    this.parts.release();
  }

  private async endServer(child: ChildProcess): Promise<void> {
    for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
      if (hasEnded(child) || child.pid === undefined) return;
      const ended = new Promise((done) => child.once('exit', done));
      sendSignal(this.parts.binaries, child.pid, signal);
      const timeout = new AbortController();
      await Promise.race([ended, sleep(stopTimeoutMs, undefined, { signal: timeout.signal }).catch(() => undefined)]);
      timeout.abort();
    }
  }
}

async function takeFolder(files: ClusterFiles): Promise<() => void> {
  try {
    makeFolder(files);
    return await claimFolder(files.folder);
  } catch (error) {
    if (error instanceof RialtoError) throw error;
    throw embeddedUnavailable(`cannot use ${files.folder} (${(error as Error).message}; see RIALTO_DATA_DIR)`, error);
  }
}

/**
 * URL of a database. With a socket folder the `host` parameter wins over the host in the URL, which is there for
 * readers.
 */
function urlOf(password: string, port: number, socketFolder = '', database = 'rialto'): string {
  const socket = socketFolder && `?host=${encodeURIComponent(socketFolder)}`;
  return `postgres://rialto:${password}@127.0.0.1:${port}/${database}${socket}`;
}

/**
 * Returns the version of the server, and creates the product's database if it is missing. @param url of the database
 * `postgres`.
 */
async function greet(url: string): Promise<string> {
  const client = new Client({ connectionString: url });
  client.on('error', () => undefined); // the exit of the server process is watched instead
  await client.connect();
  try {
    const found = await client.query("SELECT FROM pg_database WHERE datname = 'rialto'");
    if (found.rowCount === 0) await client.query('CREATE DATABASE rialto');
    const { rows } = await client.query<{ server_version: string }>('SHOW server_version');
    return rows[0]?.server_version ?? '';
  } finally {
    await client.end();
  }
}

function sendSignal({ pgCtl }: EmbeddedBinaries, pid: number, signal: Signal): void {
  if (process.platform === 'win32') {
    spawnSync(pgCtl, ['kill', signal.slice(3), String(pid)]);
    return;
  }
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

function brief(log: string): string {
  const lines = log.trim().split('\n');
  return (lines.find((line) => line.includes('FATAL')) ?? lines.at(-1) ?? 'its log is empty').trim();
}

/**
 * Finds a free port on the loopback interface. If it is taken meanwhile, the server reports that and the caller tries
 * another.
 */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done, fail) => server.once('error', fail).listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}
