import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { embeddedUnavailable } from './embedded-binaries.js';

/** A program with its arguments, and the account that runs it when it is not the account of this process. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly uid?: number;
  readonly gid?: number;
}

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** Runs PostgreSQL programs under a suitable account. */
export interface EmbeddedAccount {
  /** The account that must own the database files; absent when it is the account of this process. */
  readonly owner?: Owner;
  wrap(command: string, args: readonly string[]): Launch;
}

/**
 * Chooses the account that runs PostgreSQL, which refuses to run as root. When this process is root, it tries in this
 * order: the account `postgres`, or without it the unprivileged account of the system; a user namespace, when that
 * account cannot reach the folders (a checkout in root's home); that account with the capability to ignore folder
 * permissions. Throws `unavailable` when none of these can reach `postgres` and `folder`.
 */
export function chooseAccount(postgres: string, folder: string): EmbeddedAccount {
  if (process.getuid?.() !== 0) return { wrap: (command, args) => ({ command, args }) };
  const found = candidates().find((account) => canRun(account, postgres, folder));
  if (found) return found;
  throw embeddedUnavailable(
    'does not run as root, and no other account can reach this folder (run the gateway as an ordinary user)',
  );
}

function candidates(): EmbeddedAccount[] {
  const account = systemAccount('postgres') ?? systemAccount('nobody');
  return account ? [asAccount(account), inUserNamespace, pastPermissions(account)] : [inUserNamespace];
}

function asAccount(owner: Owner): EmbeddedAccount {
  return { owner, wrap: (command, args) => ({ command, args, ...owner }) };
}

const inUserNamespace: EmbeddedAccount = {
  owner: { uid: 0, gid: 0 },
  wrap: (command, args) => ({
    command: 'unshare',
    args: ['--user', '--map-user=1000', '--map-group=1000', '--', command, ...args],
  }),
};

function pastPermissions(owner: Owner): EmbeddedAccount {
  const account = [`--reuid=${owner.uid}`, `--regid=${owner.gid}`, '--clear-groups'];
  const capability = ['--inh-caps=+dac_override', '--ambient-caps=+dac_override'];
  return {
    owner,
    wrap: (command, args) => ({ command: 'setpriv', args: [...account, ...capability, '--', command, ...args] }),
  };
}

// initdb looks up its own uid, so the account must exist in /etc/passwd.
function systemAccount(name: string): Owner | undefined {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${name}:`));
  const [, , uid, gid] = line?.split(':') ?? [];
  return uid === undefined || gid === undefined ? undefined : { uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 };
}

function canRun(account: EmbeddedAccount, postgres: string, folder: string): boolean {
  const { command, args, uid, gid } = account.wrap('/bin/sh', ['-c', 'cd "$0" && "$1" --version', folder, postgres]);
  return spawnSync(command, args, { uid, gid, cwd: '/', stdio: 'ignore', timeout: 10_000 }).status === 0;
}
