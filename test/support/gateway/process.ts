import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { entryArgs } from './entry.js';
import { eventually } from './eventually.js';

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  /** The lines of standard error. */
  readonly stderr: readonly string[];
}

/** A gateway in a separate process, with exactly the given environment. */
export interface GatewayProcess {
  readonly child: ChildProcess;
  /** The address in the ready line. Rejects with the complete output when the process ends before it is ready. */
  readonly ready: Promise<string>;
  readonly ended: Promise<Ended>;
  /** Returns the standard output until now. */
  output(): string;
  /** Resolves when standard error contains the text. */
  said(text: string): Promise<unknown>;
}

export interface ProcessOptions {
  readonly uid?: number;
  readonly gid?: number;
  /** Modules that Node loads before the gateway. */
  readonly imports?: readonly string[];
}

export function startProcess(
  env: Record<string, string | undefined>,
  { imports = [], ...account }: ProcessOptions = {},
): GatewayProcess {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const flags = imports.flatMap((module) => ['--import', module]);
  const child = spawn(process.execPath, [...flags, ...entryArgs('main.ts')], {
    env: { PATH, NODE_COMPILE_CACHE, NODE_ENV: 'development', PORT: '0', METRICS_PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...account,
  });
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = once(child, 'close').then(([code]): Ended => {
    const lines = stderr.split('\n').filter((line) => line !== '');
    return { code: code as number | null, stdout, stderr: lines };
  });
  const ready = new Promise<string>((resolve, reject) => {
    child.stdout?.on('data', () => {
      const url = /Rialto is ready on (http:\S+)[\s\S]*\n/.exec(stdout)?.[1];
      if (url) resolve(url);
    });
    void ended.then((end) => reject(new Error(`the gateway ended before it was ready: ${JSON.stringify(end)}`)));
  });
  ready.catch(() => undefined);
  const said = (text: string): Promise<unknown> =>
    eventually(
      () => stderr,
      (all) => all.includes(text),
    );
  return { child, ready, ended, output: () => stdout, said };
}

/**
 * Returns the processes with a working directory in this folder or below it, which are those that a killed or stopped
 * gateway left running. Linux only.
 */
export function processesBelow(folder: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && worksBelow(pid, folder));
}

function worksBelow(pid: number, folder: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`).startsWith(folder);
  } catch {
    return false;
  }
}
