import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { embeddedUnavailable } from './embedded-binaries.js';

/** A program with its arguments, and the account to spawn it with when it is not our own. */
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

/** How PostgreSQL programs are run here. */
export interface EmbeddedAccount {
  /** Who must own the files of the database; absent when that is us anyway. */
  readonly owner?: Owner;
  wrap(command: string, args: readonly string[]): Launch;
}

/**
 * PostgreSQL refuses to run as root, so root hands it to another account: `postgres` or `nobody`; when that account cannot
 * reach the folders (a checkout in root's home), a user namespace, or that account allowed past folder permissions.
 * Throws `unavailable` when none of these can reach `postgres` and `folder`.
 */
export function chooseAccount(postgres: string, folder: string): EmbeddedAccount {
  if (process.getuid?.() !== 0) return { wrap: (command, args) => ({ command, args }) };
  const found = candidates().find((account) => canRun(account, postgres, folder));
  if (found) return found;
  throw embeddedUnavailable('does not run as root, and no other account can reach this folder (try an ordinary user)');
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

// initdb looks its own uid up, so the account must exist.
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
