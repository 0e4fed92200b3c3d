import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import { RialtoError } from '../kernel/errors.js';
import { isJsonObject } from '../kernel/json.js';
import { parseJson } from '../protocol/jsonrpc.js';
import { LineSplitter } from './line-splitter.js';
import { removed } from './program-caches.js';
import type { ProgramGuard } from './program-guard.js';
import { environmentOf, isThere, type StdioCommand } from './stdio-command.js';

const maxLine = 1_048_576;
const maxNote = 500;
const notesPerSecond = 20;
/** AE-44. */
const politeMs = 5_000;
const sternMs = 2_000;
const hint = '`command` is a program without its arguments; those stand in `args`';

/**
 * A line to a program of this machine: one JSON-RPC message a line on its standard input and output. It leads a process group of its own,
 * which ends with the line; what it says on standard error is noted, a little a second.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  private child?: ChildProcessWithoutNullStreams;
  private home?: string;
  private ending?: Promise<void>;
  private tidied = Promise.resolve();
  private unsent = '';
  private sending?: Promise<void>;

  constructor(
    private readonly command: StdioCommand,
    private readonly guard: Pick<ProgramGuard, 'wordsFor' | 'handOver'>,
    private readonly note: (line: string) => void,
  ) {}

  /** Throws `remote_transport` when the program cannot be started, `unprocessable` when it may not be. */
  async start(): Promise<void> {
    const before = await this.guard.wordsFor(this.command.limits);
    this.home = mkdtempSync(join(tmpdir(), 'rialto-mcp-'));
    const cwd = this.command.cwd ?? this.home;
    const env = environmentOf(this.command, this.home);
    if (!isThere(this.command, { path: env.PATH ?? '', cwd })) {
      this.over();
      throw new RialtoError('remote_transport', { message: `there is no program "${this.command.command}"`, hint });
    }
    this.guard.handOver(this.home);
    const [program, ...args] = [...before, this.command.command, ...this.command.args];
    const child = spawn(program!, args, {
      cwd,
      env,
      detached: true,
      windowsHide: true,
    });
    this.child = child;
    child.once('exit', () => this.over());
    child.on('error', (error) => this.onerror?.(error));
    child.stdin.on('error', (error) => this.onerror?.(error));
    this.read(child);
    this.listen(child);
    try {
      await once(child, 'spawn');
    } catch (cause) {
      this.over();
      throw new RialtoError('remote_transport', { message: 'the program of the MCP server cannot be started', cause });
    }
  }

  /** What is said in one turn of the event loop goes out in one write, which costs more than what it carries. */
  send(message: JSONRPCMessage): Promise<void> {
    this.unsent += `${JSON.stringify(message)}\n`;
    this.sending ??= nextTurn().then(() => this.flush());
    return this.sending;
  }

  private async flush(): Promise<void> {
    const { unsent } = this;
    const stdin = this.child?.stdin;
    this.unsent = '';
    this.sending = undefined;
    if (!stdin?.writable) throw new RialtoError('remote_transport', { message: 'the program of the MCP server ended' });
    if (!stdin.write(unsent)) await Promise.race([once(stdin, 'drain'), once(stdin, 'close')]);
  }

  /** Its input ends; then it is told to end, then made to, with whatever it started. */
  close(): Promise<void> {
    this.ending ??= this.end();
    return this.ending;
  }

  private async end(): Promise<void> {
    const { child } = this;
    if (!child || child.pid === undefined) {
      this.over();
      return this.tidied;
    }
    const gone = isOver(child) ? Promise.resolve() : once(child, 'exit').then(() => undefined);
    await this.sending?.catch(() => undefined);
    child.stdin.end();
    if (!(await within(gone, politeMs))) {
      this.signal('SIGTERM');
      await within(gone, sternMs);
    }
    this.signal('SIGKILL');
    await within(gone, sternMs);
    this.over();
    await this.tidied;
  }

  private read(child: ChildProcessWithoutNullStreams): void {
    const splitter = new LineSplitter(maxLine);
    child.stdout.on('data', (chunk: Buffer) => {
      const lines = splitter.take(chunk);
      if (lines) for (const line of lines) this.heard(line);
      else {
        child.stdout.removeAllListeners('data').resume();
        this.fail(`a line of more than ${maxLine} bytes`);
      }
    });
  }

  /** Programs print to their output what belongs elsewhere; that is no message, and no reason to end. */
  private heard(line: string): void {
    if (line.trim() === '') return;
    const parsed = parseJson(line);
    if (!parsed.ok || !isJsonObject(parsed.value) || parsed.value.jsonrpc !== '2.0')
      return this.onerror?.(new RialtoError('remote_invalid_response', { message: 'a line that is no message' }));
    this.onmessage?.(parsed.value as unknown as JSONRPCMessage);
  }

  private listen(child: ChildProcessWithoutNullStreams): void {
    let left = notesPerSecond;
    const refill = setInterval(() => (left = notesPerSecond), 1_000).unref();
    child.once('close', () => clearInterval(refill));
    child.stderr.on('data', (chunk: Buffer) => {
      for (const line of chunk.toString('utf8').split('\n'))
        if (line.trim() !== '' && left-- > 0) this.note(line.slice(0, maxNote));
    });
  }

  private fail(what: string): void {
    this.onerror?.(new RialtoError('remote_invalid_response', { message: `the MCP server said ${what}` }));
    this.signal('SIGKILL');
  }

  private signal(name: NodeJS.Signals): void {
    const pid = this.child?.pid;
    if (pid === undefined) return;
    try {
      process.kill(-pid, name);
    } catch {
      // nobody of the group is left
    }
  }

  /** Once. What it started may be there still, though it is gone itself. */
  private over(): void {
    const { home } = this;
    if (home === undefined) return;
    this.home = undefined;
    this.signal('SIGKILL');
    this.tidied = removed(home);
    this.onclose?.();
  }
}

function isOver(child: ChildProcessWithoutNullStreams): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

async function within(event: Promise<void>, ms: number): Promise<boolean> {
  const timer = new AbortController();
  const late = sleep(ms, false, { signal: timer.signal }).catch(() => false);
  const isIt = await Promise.race([event.then(() => true), late]);
  timer.abort();
  return isIt;
}
