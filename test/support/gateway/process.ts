import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { entryArgs } from './entry.js';
import { eventually } from './eventually.js';

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  /** What it wrote to standard error, line by line. */
  readonly stderr: readonly string[];
}

/** A gateway in a process of its own, with exactly the environment it is given. */
export interface GatewayProcess {
  readonly child: ChildProcess;
  /** The address of the ready line. Rejects with what it wrote when it ends instead. */
  readonly ready: Promise<string>;
  readonly ended: Promise<Ended>;
  /** What it has written to standard output. */
  output(): string;
  /** Resolves once it has written this to standard error. */
  said(text: string): Promise<unknown>;
}

export interface ProcessOptions {
  readonly uid?: number;
  readonly gid?: number;
  /** Modules that are loaded first. */
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
    void ended.then((end) => reject(new Error(`it ended: ${JSON.stringify(end)}`)));
  });
  ready.catch(() => undefined);
  const said = (text: string): Promise<unknown> =>
    eventually(
      () => stderr,
      (all) => all.includes(text),
    );
  return { child, ready, ended, output: () => stdout, said };
}

/** Processes that work in this folder or below it: what a killed or stopped gateway left running. Linux only. */
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
