import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, existsSync, lchownSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { EmbeddedAccount } from './embedded-account.js';
import { embeddedUnavailable, type EmbeddedBinaries } from './embedded-binaries.js';

/** Where an embedded database keeps its things, below the data folder of the product. */
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

/** What a socket's path may take: macOS allows 104 bytes with the last one for the end, Linux 108. */
const maxSocketPath = 103;

/**
 * Where the server offers its Unix socket: in its data folder, which its account alone may open. Undefined where there can be none;
 * TCP is always there, at half the speed (docs/decisions/0004).
 */
export function socketFolder({ data }: ClusterFiles): string | undefined {
  const fits = Buffer.byteLength(join(data, '.s.PGSQL.65535')) <= maxSocketPath && !/[",]/.test(data);
  return fits && process.platform !== 'win32' ? data : undefined;
}

/** Makes the folder; open for passing through, since the server may run under another account. */
export function makeFolder({ folder }: ClusterFiles): void {
  if (existsSync(folder)) return;
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o755);
}

/**
 * Makes the database files unless they are complete. They are built aside and renamed into place, so a process killed in the
 * middle leaves nothing that looks finished; what has no PG_VERSION is thrown away.
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
  throw embeddedUnavailable(`has lost its password file ${files.password}`);
}

/** What a spawned program may see of our environment: nothing of ours, only what it needs to find its way. */
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
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()));
  return new Promise((done, fail) => {
    child.once('error', (cause) => fail(embeddedUnavailable(`cannot be run (${cause.message})`, cause)));
    child.once('close', (code) => {
      if (code === 0) done();
      else fail(embeddedUnavailable(`could not be made (${complaint.trim().split('\n').at(-1) ?? ''})`));
    });
  });
}

// The account changes when a checkout moves to where the earlier one cannot follow; a plain copy loses the modes.
function adopt({ data }: ClusterFiles, { owner }: EmbeddedAccount): void {
  if (statSync(data).mode & 0o077) chmodSync(data, 0o700);
  if (!owner || statSync(data).uid === owner.uid) return;
  const entries = readdirSync(data, { recursive: true, encoding: 'utf8' }).map((entry) => join(data, entry));
  for (const path of [...entries, data]) lchownSync(path, owner.uid, owner.gid);
}
