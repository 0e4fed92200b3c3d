import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import type { StdioLimits } from '../platform/config/config-file.js';

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

/** Programs of Linux that hold a child to its limits, as far as this machine has them. */
export interface Wardens {
  readonly setpriv: boolean;
  readonly prlimit: boolean;
}

/** Most MCP servers are started by `npx` or `node`: those of this process are found, wherever they were installed. */
const searchPath = `/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:${dirname(process.execPath)}`;
const defaultFiles = 1_024;

/**
 * The words that start a program (reliability-security 4.11): it ends with this process even when that is killed, and takes no more than it
 * may. Pure.
 */
export function argvOf(
  { command, args, limits }: Pick<StdioCommand, 'command' | 'args' | 'limits'>,
  { setpriv, prlimit }: Wardens,
): string[] {
  const { memoryMb, processes, files = defaultFiles, cpuSeconds, fileMb } = limits ?? {};
  const bounds = [
    ['--core', 0],
    ['--nofile', files],
    ['--as', memoryMb && memoryMb * 1_048_576],
    ['--nproc', processes],
    ['--cpu', cpuSeconds],
    ['--fsize', fileMb && fileMb * 1_048_576],
  ] as const;
  return [
    ...(setpriv ? ['setpriv', '--pdeathsig', 'KILL', '--'] : []),
    ...(prlimit
      ? ['prlimit', ...bounds.flatMap(([flag, most]) => (most === undefined ? [] : [`${flag}=${most}`])), '--']
      : []),
    command,
    ...args,
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
