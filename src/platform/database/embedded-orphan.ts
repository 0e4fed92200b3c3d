import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../kernel/clock.js';
import { isAlive } from './embedded-owner.js';

/** The content of a server's `postmaster.pid`: https://www.postgresql.org/docs/current/storage-file-layout.html */
export interface Postmaster {
  readonly pid: number;
  readonly port: number;
  /** Folder of its Unix socket; empty when it has none. */
  readonly socketFolder: string;
  readonly ready: boolean;
}

/** Reads `postmaster.pid`; undefined when the folder does not have one. */
export function readPostmaster(data: string): Postmaster | undefined {
  const file = join(data, 'postmaster.pid');
  if (!existsSync(file)) return undefined;
  const lines = readFileSync(file, 'utf8').split('\n');
  const [pid, , , port, socketFolder = '', , , state] = lines.map((line) => line.trim());
  return { pid: Number(pid), port: Number(port), socketFolder, ready: state === 'ready' };
}

/**
 * Stops a server that outlived its killed owner, and waits until its last process has ended. The caller owns the
 * folder. When the recorded pid now belongs to an unrelated process, that process is left alone.
 */
export async function stopOrphan(
  data: string,
  signal: (pid: number, name: 'SIGINT' | 'SIGQUIT') => void,
): Promise<void> {
  const postmaster = readPostmaster(data);
  if (!postmaster) return;
  const running = (): number[] => serverProcesses(data, postmaster.pid);
  for (const name of ['SIGINT', 'SIGQUIT'] as const) {
    if (running().includes(postmaster.pid)) signal(postmaster.pid, name);
    if (await eventually(() => running().length === 0, 10_000)) break;
  }
  // No process works in the folder, so the pid in the file can only belong to an unrelated process. The file would
  // prevent the next start.
  if (process.platform !== 'linux' || running().length > 0) return;
  const socket = `.s.PGSQL.${postmaster.port}`;
  for (const file of ['postmaster.pid', socket, `${socket}.lock`]) rmSync(join(data, file), { force: true });
}

// Every process of a server works in its data folder, also the processes that a killed postmaster left behind.
function serverProcesses(data: string, postmaster: number): number[] {
  if (process.platform === 'linux') {
    const folder = realpathSync(data);
    return readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0 && worksIn(pid, folder));
  }
  return isAlive(postmaster) && namesFolder(postmaster, data) ? [postmaster] : [];
}

function worksIn(pid: number, folder: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === folder;
  } catch {
    return false;
  }
}

function namesFolder(pid: number, data: string): boolean {
  if (process.platform === 'win32') return true;
  return spawnSync('ps', ['-p', String(pid), '-o', 'command='], { encoding: 'utf8' }).stdout.includes(data);
}

/** Polls until the condition holds; false when it does not hold within `ms` milliseconds. */
async function eventually(condition: () => boolean, ms: number): Promise<boolean> {
  for (const deadline = systemClock.now() + ms; !condition(); await sleep(10)) {
    if (systemClock.now() > deadline) return false;
  }
  return true;
}
