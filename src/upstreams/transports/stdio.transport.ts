import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { JSONRPCMessage, JSONRPCRequest, Transport } from '@modelcontextprotocol/client';
import { RialtoError } from '../../kernel/errors.js';
import { AnswerReader, maxAnswerBytes } from './answer-reader.js';
import { LineSplitter } from './line-splitter.js';
import { removed } from '../programs/program-caches.js';
import type { ProgramGuard } from '../programs/program-guard.js';
import { environmentOf, isThere, type StdioCommand } from '../programs/stdio-command.js';

/** A program that says so much in one line never ends it. */
const endless = 16 * maxAnswerBytes;
const maxNote = 500;
const notesPerSecond = 20;
/** AE-44. */
const politeMs = 5_000;
const sternMs = 2_000;
const hint = '`command` is a program without its arguments; those stand in `args`';

/** A connection that tells whether the first question for its server's revision was answered. */
export interface DiscoveryLine {
  /** `unanswered` when `initialize` was said, which the server then took; `late`: it was answered all the same. */
  readonly discovery: 'none' | 'asked' | 'answered' | 'unanswered' | 'late';
}

/**
 * A line to a program of this machine: one JSON-RPC message a line on its standard input and output. It leads a process group of its own,
 * which ends with the line; what it says on standard error is noted, a little a second.
 */
export class StdioTransport implements Transport, DiscoveryLine {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  discovery: DiscoveryLine['discovery'] = 'none';
  /** Of the question for the revision of the server. */
  private discoveryId?: unknown;
  /** Programs print to their output what belongs elsewhere; that is no message, and no reason to end. */
  private readonly answers = new AnswerReader(
    (message) => this.heard(message),
    (error) => this.onerror?.(error),
  );
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

  /** By these two the SDK knows a program, which says `initialize` to one that does not answer its first question. */
  get pid(): number | undefined {
    return this.child?.pid;
  }

  get stderr(): Readable | undefined {
    return this.child?.stderr;
  }

  /** Throws `remote_transport` when the program cannot be started, `unprocessable` when it may not be. */
  async start(): Promise<void> {
    const before = await this.guard.wordsFor(this.command.limits);
    if (this.ending)
      throw new RialtoError('remote_transport', { message: 'the program of the MCP server is not wanted' });
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
    if ('method' in message && 'id' in message) this.asks(message);
    this.answers.sends(message);
    this.unsent += `${JSON.stringify(message)}\n`;
    this.sending ??= nextTurn().then(() => this.flush());
    return this.sending;
  }

  private asks({ id, method }: JSONRPCRequest): void {
    if (method === 'server/discover' && this.discovery === 'none') {
      this.discovery = 'asked';
      this.discoveryId = id;
    } else if (method === 'initialize' && this.discovery === 'asked') this.discovery = 'unanswered';
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
    const splitter = new LineSplitter(maxAnswerBytes);
    child.stdout.on('data', (chunk: Buffer) => {
      for (const line of splitter.take(chunk)) {
        if (typeof line === 'string') this.answers.read(line);
        else this.answers.tooLong(line);
      }
      // One poll of the event loop reads a pipe up to 32 times: a program that writes without end would keep others waiting.
      child.stdout.pause();
      setImmediate(() => child.stdout.resume());
      if (splitter.excess <= endless) return;
      child.stdout.removeAllListeners('data').resume();
      this.fail(`a line of more than ${endless} bytes`);
    });
  }

  private heard(message: JSONRPCMessage): void {
    if (this.discoveryId !== undefined && 'id' in message && message.id === this.discoveryId) {
      this.discoveryId = undefined;
      this.discovery = this.discovery === 'unanswered' ? 'late' : 'answered';
    }
    this.onmessage?.(message);
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
