import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import type { StdioLimits } from '../../platform/config/config-file.js';

/** Program as it is started. Its environment holds nothing of the gateway. */
export interface StdioCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Working folder. When absent, the program gets a temporary folder that is removed with it. */
  readonly cwd?: string;
  /** Folder for its downloads; it survives a restart of the program. */
  readonly cache: string;
  readonly limits?: StdioLimits;
}

/** Way to isolate a program from the gateway, with the command prefix for it. */
export interface Isolation {
  readonly kind: 'user' | 'namespace' | 'privileges' | 'none';
  readonly words: readonly string[];
}

/**
 * Folders searched for programs. Most MCP servers are started by `npx` or `node`: the folder of this process's own
 * `node` is included, wherever it is installed.
 */
const searchPath = `/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:${dirname(process.execPath)}`;
/**
 * Default limits of a program, where the operator sets no other limit. A program that used an hour of processor time is
 * considered out of control.
 */
const defaultLimits = { memoryMb: 4_096, processes: 1_024, files: 1_024, cpuSeconds: 3_600, fileMb: 1_024 };
/** Programs of util-linux, by absolute path: the `PATH` of the MCP server must not choose them. */
export const tools = {
  setpriv: '/usr/bin/setpriv',
  prlimit: '/usr/bin/prlimit',
  unshare: '/usr/bin/unshare',
};
const mebibyte = 1_048_576;

/**
 * Lists the ways to isolate a program with the tools of this machine, best first. Pure.
 * @param user the user that the program runs as.
 */
export function isolationsFor(
  { setpriv, unshare }: { setpriv: boolean; unshare: boolean },
  user?: { uid: number; gid: number },
): Isolation[] {
  // The program is killed when this process ends, even when this process is killed. It gains no privileges through
  // programs that it starts, and keeps no privilege of root.
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
    // An unprivileged process may not be allowed to drop capabilities from the bounding set.
    ...(setpriv ? [{ kind: 'privileges', words: [...modest, '--'] } as const] : []),
    { kind: 'none', words: [] },
  ];
}

/**
 * Builds the command prefix of a program (reliability-security 4.11): its isolation and its limits. Memory is limited
 * as data and not as address space, because V8 reserves much more address space than it uses. Pure.
 *
 * @param isOwnCount whether its processes are counted apart from other programs; otherwise the default process limit of
 * a whole user could end another program.
 */
export function wordsBefore(
  { isolation, prlimit, isOwnCount }: { isolation: Isolation; prlimit: boolean; isOwnCount: boolean },
  limits: StdioLimits = {},
): string[] {
  if (!prlimit) return [...isolation.words];
  const { memoryMb, processes, files, cpuSeconds, fileMb } = { ...defaultLimits, ...limits };
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

/** Returns whether the program exists and can be run: as a path, or as a name in a folder of its PATH. */
export function isThere({ command }: Pick<StdioCommand, 'command'>, at: { path: string; cwd: string }): boolean {
  if (process.platform === 'win32') return true; // Windows decides by the file extension
  const folders = command.includes('/') ? [''] : at.path.split(delimiter);
  return folders.some((folder) => isExecutable(resolve(at.cwd, folder, command)));
}

/** Returns whether the path is a file that may be run. */
export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/**
 * Builds the complete environment of a program.
 * @param home its home folder.
 */
export function environmentOf(
  { env, cache }: Pick<StdioCommand, 'env' | 'cache'>,
  home: string,
): Record<string, string> {
  const caches = { XDG_CACHE_HOME: cache, npm_config_cache: join(cache, 'npm') };
  return { PATH: searchPath, HOME: home, LANG: 'C.UTF-8', ...caches, ...env };
}
