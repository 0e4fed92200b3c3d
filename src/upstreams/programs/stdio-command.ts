import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import type { StdioLimits } from '../../platform/config/config-file.js';

/** A program as it is started: nothing of ours is in its environment. */
export interface StdioCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Absent: a folder of its own, that goes with it. */
  readonly cwd?: string;
  /** For what it downloads; it stays until the next start. */
  readonly cache: string;
  readonly limits?: StdioLimits;
}

/** A way to keep a program from what this process holds: the words before its own. */
export interface Isolation {
  readonly kind: 'user' | 'namespace' | 'privileges' | 'none';
  readonly words: readonly string[];
}

/** Most MCP servers are started by `npx` or `node`: those of this process are found, wherever they were installed. */
const searchPath = `/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:${dirname(process.execPath)}`;
/** What a program may use for which the operator names no other limit. An hour of processor time is a program that runs wild. */
const usual = { memoryMb: 4_096, processes: 1_024, files: 1_024, cpuSeconds: 3_600, fileMb: 1_024 };
/** Of util-linux, by their paths: a `PATH` of the program's own must not choose them. */
export const tools = {
  setpriv: '/usr/bin/setpriv',
  prlimit: '/usr/bin/prlimit',
  unshare: '/usr/bin/unshare',
};
const mebibyte = 1_048_576;

/** The ways to isolate a program that this machine has the tools for, best first. Pure. @param user who it is to run as. */
export function isolationsFor(
  { setpriv, unshare }: { setpriv: boolean; unshare: boolean },
  user?: { uid: number; gid: number },
): Isolation[] {
  // It ends with this process even when that is killed, gains nothing by what it starts, and keeps no privilege of root.
  const modest = [tools.setpriv, '--pdeathsig', 'KILL', '--no-new-privs', '--inh-caps=-all'];
  const privileges = [...modest, '--bounding-set=-all'];
  if (user)
    return setpriv
      ? [
          {
            kind: 'user',
            words: [...privileges, `--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups', '--'],
          },
        ]
      : [];
  const namespace = [tools.unshare, '--user', '--map-current-user', '--'];
  return [
    ...(setpriv && unshare ? [{ kind: 'namespace', words: [...namespace, ...privileges, '--'] } as const] : []),
    ...(setpriv ? [{ kind: 'privileges', words: [...privileges, '--'] } as const] : []),
    // Not everybody may take away what nobody has.
    ...(setpriv ? [{ kind: 'privileges', words: [...modest, '--'] } as const] : []),
    { kind: 'none', words: [] },
  ];
}

/**
 * What stands before the words of a program (reliability-security 4.11): its isolation, and its limits. Memory is limited as data, not as
 * addresses, of which V8 reserves many times what it uses. Pure.
 *
 * @param isOwnCount whether its processes are counted apart from others; a usual limit on those of a whole user could end another program.
 */
export function wordsBefore(
  { isolation, prlimit, isOwnCount }: { isolation: Isolation; prlimit: boolean; isOwnCount: boolean },
  limits: StdioLimits = {},
): string[] {
  if (!prlimit) return [...isolation.words];
  const { memoryMb, processes, files, cpuSeconds, fileMb } = { ...usual, ...limits };
  const bounds = {
    core: 0,
    nofile: files,
    data: memoryMb * mebibyte,
    cpu: cpuSeconds,
    fsize: fileMb * mebibyte,
    ...((isOwnCount || limits.processes !== undefined) && { nproc: processes }),
  };
  return [
    ...isolation.words,
    tools.prlimit,
    ...Object.entries(bounds).map(([name, most]) => `--${name}=${most}`),
    '--',
  ];
}

/** Whether its program is there to be started: a path of its own, or a name among those of its PATH. */
export function isThere({ command }: Pick<StdioCommand, 'command'>, at: { path: string; cwd: string }): boolean {
  if (process.platform === 'win32') return true; // which endings stand for a program is its own affair
  const folders = command.includes('/') ? [''] : at.path.split(delimiter);
  return folders.some((folder) => isExecutable(resolve(at.cwd, folder, command)));
}

/** Whether a file is there that may be run. */
export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** All of its environment. @param home its folder. */
export function environmentOf(
  { env, cache }: Pick<StdioCommand, 'env' | 'cache'>,
  home: string,
): Record<string, string> {
  const caches = { XDG_CACHE_HOME: cache, npm_config_cache: join(cache, 'npm') };
  return { PATH: searchPath, HOME: home, LANG: 'C.UTF-8', ...caches, ...env };
}
