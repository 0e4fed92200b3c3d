import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { entryArgs } from './entry.js';

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Returns only the variables that a program needs to run, so that no setting of the machine affects a test. */
export function bareEnv(env: Record<string, string> = {}): Record<string, string | undefined> {
  const { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE } = process.env;
  return { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE, ...env };
}

/** Starts an entry file of the project in a child process. `file` is relative to src, such as `cli.ts`. */
export function startEntry(
  file: string,
  args: readonly string[],
  env: Record<string, string>,
  cwd?: string,
): ChildProcess {
  return spawn(process.execPath, [...entryArgs(file), ...args], {
    env: bareEnv(env),
    cwd,
    stdio: 'pipe',
  });
}

/** Waits for the end of a child process and returns its complete output. */
export async function ended(child: ChildProcess): Promise<Ended> {
  let stdout = '';
  let stderr = '';
  child.stdout!.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr!.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}

/** Runs the `rialto` command until it ends. */
export function rialto(args: readonly string[], env: Record<string, string> = {}, cwd?: string): Promise<Ended> {
  return ended(startEntry('cli.ts', args, { NODE_ENV: 'test', ...env }, cwd));
}
