import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const folder = join(process.cwd(), 'test', 'support');

/** A PostgreSQL server that a child process of the tests runs. */
export interface KeptPostgres {
  readonly url: string;
  /** The process id of the server itself. */
  readonly pid: number;
  readonly child: ChildProcess;
  stop(): Promise<void>;
}

/** Runs a TypeScript file of the tests in a child process, without a build. `file` is relative to test/support. */
export function runTypeScript(file: string, args: readonly string[]): ChildProcess {
  const register = join(process.cwd(), 'scripts', 'register-typescript.mjs');
  return spawn(process.execPath, ['--import', register, join(folder, file), ...args], { stdio: 'pipe' });
}

/**
 * Starts an embedded PostgreSQL in a child process. Throws the error output of the child when it ends before it is
 * ready.
 */
export async function keepPostgres(dataDir: string, settings: Record<string, string> = {}): Promise<KeptPostgres> {
  const child = runTypeScript('gateway/postgres-keeper.ts', [dataDir, JSON.stringify(settings)]);
  let errorOutput = '';
  child.stderr?.on('data', (chunk: Buffer) => (errorOutput += chunk.toString()));
  const ended = once(child, 'close').then((): never => {
    throw new Error(errorOutput);
  });
  ended.catch(() => undefined);
  const [line] = (await Promise.race([once(createInterface(child.stdout!), 'line'), ended])) as [string];
  const ready = JSON.parse(line) as { url: string; pid: number };
  const stop = async (): Promise<void> => {
    child.stdin?.end();
    await ended.catch(() => undefined);
  };
  return { ...ready, child, stop };
}
