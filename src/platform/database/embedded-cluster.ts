import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, existsSync, lchownSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { EmbeddedAccount } from './embedded-account.js';
import { embeddedUnavailable, type EmbeddedBinaries } from './embedded-binaries.js';

/** Paths of the files of an embedded database, below the data folder of the product. */
export interface ClusterFiles {
  readonly folder: string;
  readonly data: string;
  readonly password: string;
  readonly log: string;
}

export function clusterFiles(dataDir: string): ClusterFiles {
  const folder = resolve(dataDir, 'pg');
  return { folder, data: join(folder, 'data'), password: join(folder, 'password'), log: join(folder, 'server.log') };
}

/** Most bytes of a socket path: macOS allows 104 bytes including the final NUL, Linux 108. */
const maxSocketPath = 103;

/**
 * Folder of the server's Unix socket: its data folder, which only its account may open. Undefined when no socket is
 * possible there. TCP always works, at half the speed (docs/decisions/0004).
 */
export function socketFolder({ data }: ClusterFiles): string | undefined {
  const fits = Buffer.byteLength(join(data, '.s.PGSQL.65535')) <= maxSocketPath && !/[",]/.test(data);
  return fits && process.platform !== 'win32' ? data : undefined;
}

/** Makes the folder. Other accounts may pass through it, because the server may run under another account. */
export function makeFolder({ folder }: ClusterFiles): void {
  if (existsSync(folder)) return;
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o755);
}

/**
 * Creates the database files unless they are complete. They are built in a draft folder and then renamed, so a
 * process that is killed halfway leaves nothing that looks complete. A folder without PG_VERSION is deleted.
 */
export async function prepareCluster(
  files: ClusterFiles,
  binaries: EmbeddedBinaries,
  account: EmbeddedAccount,
): Promise<void> {
  if (existsSync(join(files.data, 'PG_VERSION'))) return adopt(files, account);
  const draft = join(files.folder, 'new');
  for (const leftover of [files.data, draft]) rmSync(leftover, { recursive: true, force: true });
  mkdirSync(draft, { mode: 0o700 });
  rmSync(files.password, { force: true });
  writeFileSync(files.password, randomBytes(24).toString('hex'), { mode: 0o600 });
  if (account.owner) for (const path of [draft, files.password]) chownSync(path, account.owner.uid, account.owner.gid);
  await initdb(binaries.initdb, account, files.password, draft);
  renameSync(draft, files.data);
}

export function readPassword(files: ClusterFiles): string {
  if (existsSync(files.password)) return readFileSync(files.password, 'utf8');
  throw embeddedUnavailable(`has no password file at ${files.password}`);
}

/** The environment of a spawned program. It contains none of our variables, only what the program needs to run. */
export function bareEnvironment(): NodeJS.ProcessEnv | undefined {
  return process.platform === 'win32' ? undefined : { LC_ALL: 'C', PATH: '/usr/local/bin:/usr/bin:/bin' };
}

function initdb(program: string, account: EmbeddedAccount, password: string, folder: string): Promise<void> {
  const flags = ['-U', 'rialto', '-A', 'scram-sha-256', `--pwfile=${password}`, '-E', 'UTF8', '--locale=C'];
  const { command, args, uid, gid } = account.wrap(program, ['-D', folder, ...flags]);
  const child = spawn(command, args, {
    uid,
    gid,
    cwd: '/',
    env: bareEnvironment(),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errorOutput = '';
  child.stderr.on('data', (chunk: Buffer) => (errorOutput += chunk.toString()));
  return new Promise((done, fail) => {
    child.once('error', (cause) => fail(embeddedUnavailable(`cannot be run (${cause.message})`, cause)));
    child.once('close', (code) => {
      if (code === 0) done();
      else fail(embeddedUnavailable(`could not be initialized (${errorOutput.trim().split('\n').at(-1) ?? ''})`));
    });
  });
}

// The account changes when a checkout moves to a folder that the earlier account cannot reach; a plain copy loses the
// modes.
function adopt({ data }: ClusterFiles, { owner }: EmbeddedAccount): void {
  if (statSync(data).mode & 0o077) chmodSync(data, 0o700);
  if (!owner || statSync(data).uid === owner.uid) return;
  const entries = readdirSync(data, { recursive: true, encoding: 'utf8' }).map((entry) => join(data, entry));
  for (const path of [...entries, data]) lchownSync(path, owner.uid, owner.gid);
}
