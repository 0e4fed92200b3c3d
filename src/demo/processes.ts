import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { extname } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** A program of the tour in its own process. */
export interface Program {
  /** Value from the ready line. */
  readonly ready: string;
  /** Lines printed after the ready line so far. */
  readonly lines: readonly string[];
  /** Returns the lines from an index on: waits for the first of them, then a short time for more. */
  linesFrom(index: number): Promise<readonly string[]>;
  /** Sends SIGTERM and waits; sends SIGKILL when the program does not end in time. */
  stop(): Promise<void>;
}

// A program that ends is noticed at once; this limit only stops the wait for one that hangs, also on a slow machine.
const readyWithinMs = 60_000;
const stopWithinMs = 15_000;

/** Returns only the variables that a program needs to run, so that the user's own settings do not affect the tour. */
export function bareEnvironment(env: Record<string, string | undefined>): Record<string, string | undefined> {
  const names = ['PATH', 'HOME', 'TMPDIR', 'TEMP', 'SystemRoot', 'LANG'];
  return Object.fromEntries(names.map((name) => [name, env[name]]));
}

/** Starts the programs of the tour and stops all of them in every case. */
export class Programs {
  private readonly running: Program[] = [];
  private closed = false;

  constructor(private readonly cwd: string) {}

  /**
   * @param file name of a file in this folder, without extension.
   * @param isReady returns the ready value of a line; undefined for any other line.
   */
  async startProgram(
    file: string,
    env: Record<string, string | undefined>,
    isReady: (line: string) => string | undefined,
  ): Promise<Program> {
    const entry = fileURLToPath(new URL(`${file}${extname(import.meta.url)}`, import.meta.url));
    const child = spawn(process.execPath, [...process.execArgv, entry], { cwd: this.cwd, env, stdio: 'pipe' });
    const lines: string[] = [];
    let errorOutput = '';
    child.stderr.on('data', (chunk: Buffer) => (errorOutput += chunk.toString()));
    const linesFrom = async (index: number): Promise<string[]> => {
      for (let polls = 0; polls < 100 && lines.length <= index; polls++) await sleep(20);
      await sleep(50);
      return lines.slice(index);
    };
    const program = { ready: '', lines, linesFrom, stop: () => end(child) };
    this.running.push(program);
    const early = once(child, 'close').then((): never => {
      throw new Error(cause(errorOutput) ?? 'it ended before it was ready');
    });
    early.catch(() => undefined);
    const late = sleep(readyWithinMs, undefined, { ref: false }).then((): never => {
      throw new Error(`it was not ready within ${readyWithinMs / 1_000} s`);
    });
    const ready = new Promise<string>((resolve) => {
      createInterface(child.stdout).on('line', (line) => {
        const value = isReady(line);
        if (value === undefined) lines.push(line);
        else resolve(value);
      });
    });
    program.ready = await Promise.race([ready, early, late]);
    if (this.closed) throw new Error('stopped');
    return program;
  }

  /** Stops the programs in reverse order; safe to call twice. */
  async close(): Promise<void> {
    this.closed = true;
    for (const program of this.running.splice(0).reverse()) await program.stop();
  }
}

/** Returns the line of an error output that gives the reason. */
function cause(errorOutput: string): string | undefined {
  const lines = errorOutput.trim().split('\n');
  return lines.find((line) => /^rialto: |Error\b/.test(line)) ?? lines[0];
}

async function end(child: ChildProcess): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    const timeout = new AbortController();
    await Promise.race([ended, sleep(stopWithinMs, undefined, { signal: timeout.signal }).catch(() => undefined)]);
    timeout.abort();
  }
}
