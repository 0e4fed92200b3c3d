import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { extname } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** A program of the tour in a process of its own. */
export interface Program {
  /** What the ready line said. */
  readonly ready: string;
  /** Lines after the ready one so far. */
  readonly lines: readonly string[];
  /** The lines from an index on: waits for the first of them, and a moment for those that are on their way. */
  linesFrom(index: number): Promise<readonly string[]>;
  /** Asks it to end, waits, and insists after a while. */
  stop(): Promise<void>;
}

// A program that ends says so at once: this only ends a wait for one that hangs, on the slowest machine.
const readyWithinMs = 60_000;
const stopWithinMs = 15_000;

/** Only what a program needs to run: nothing of the user's own settings reaches the tour. */
export function bareEnvironment(env: Record<string, string | undefined>): Record<string, string | undefined> {
  const names = ['PATH', 'HOME', 'TMPDIR', 'TEMP', 'SystemRoot', 'LANG'];
  return Object.fromEntries(names.map((name) => [name, env[name]]));
}

/** Starts the programs of the tour and ends them all, however the tour ends. */
export class Programs {
  private readonly running: Program[] = [];
  private closed = false;

  constructor(private readonly cwd: string) {}

  /**
   * @param file beside this one, without extension.
   * @param isReady the part of a line that says the program is ready; undefined for any other line.
   */
  async start(
    file: string,
    env: Record<string, string | undefined>,
    isReady: (line: string) => string | undefined,
  ): Promise<Program> {
    const entry = fileURLToPath(new URL(`${file}${extname(import.meta.url)}`, import.meta.url));
    const child = spawn(process.execPath, [...process.execArgv, entry], { cwd: this.cwd, env, stdio: 'pipe' });
    const lines: string[] = [];
    let complaint = '';
    child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()));
    const linesFrom = async (index: number): Promise<string[]> => {
      for (let looks = 0; looks < 100 && lines.length <= index; looks++) await sleep(20);
      await sleep(50);
      return lines.slice(index);
    };
    const program = { ready: '', lines, linesFrom, stop: () => end(child) };
    this.running.push(program);
    const early = once(child, 'close').then((): never => {
      throw new Error(cause(complaint) ?? 'it ended before it was ready');
    });
    early.catch(() => undefined);
    const late = sleep(readyWithinMs, undefined, { ref: false }).then((): never => {
      throw new Error(`it was not ready within ${readyWithinMs / 1_000} s`);
    });
    const ready = new Promise<string>((resolve) => {
      createInterface(child.stdout).on('line', (line) => {
        const said = isReady(line);
        if (said === undefined) lines.push(line);
        else resolve(said);
      });
    });
    program.ready = await Promise.race([ready, early, late]);
    if (this.closed) throw new Error('stopped');
    return program;
  }

  /** Ends the last one first; safe to call twice. */
  async close(): Promise<void> {
    this.closed = true;
    for (const program of this.running.splice(0).reverse()) await program.stop();
  }
}

/** The line of an error output that says why. */
function cause(complaint: string): string | undefined {
  const lines = complaint.trim().split('\n');
  return lines.find((line) => /^rialto: |Error\b/.test(line)) ?? lines[0];
}

async function end(child: ChildProcess): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    const patience = new AbortController();
    await Promise.race([ended, sleep(stopWithinMs, undefined, { signal: patience.signal }).catch(() => undefined)]);
    patience.abort();
  }
}
