import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { JSONRPCMessage, JSONRPCRequest, Transport } from '@modelcontextprotocol/client';
import { RialtoError } from '../../kernel/errors.js';
import { AnswerReader, linesInOneTurn, maxAnswerBytes } from './answer-reader.js';
import { OrderedWork } from '../../platform/ordered-work.js';
import type { CredentialRemover } from '../../platform/secrets/credential-remover.js';
import { LineSplitter } from './line-splitter.js';
import { removed } from '../programs/program-caches.js';
import type { ProgramGuard } from '../programs/program-guard.js';
import { environmentOf, isThere, type StdioCommand } from '../programs/stdio-command.js';

/** Maximum size in bytes of one line; a program that exceeds it is killed. */
const maxLineBytes = 16 * maxAnswerBytes;
const maxLoggedChars = 500;
const loggedLinesPerSecond = 20;
/** Waits of `close` for the program to exit, after the end of its input and after each signal (AE-44). */
const exitMs = 5_000;
const killMs = 2_000;
/** How long the output of a program that has exited is read, and how often again while a long answer is parsed. */
const restMs = 1_000;
const maxRestWaits = 10;
const hint = '`command` names the program without arguments; put these in `args`';

/** Connection that reports whether `server/discover`, the first request, was answered. */
export interface DiscoveryLine {
  /**
   * `unanswered`: the client sent `initialize` instead, which the server accepted. `late`: the answer arrived after
   * that.
   */
  readonly discovery: 'none' | 'asked' | 'answered' | 'unanswered' | 'late';
}

/**
 * Connection to a program on this machine: one JSON-RPC message per line on its standard input and output. The program
 * leads its own process group, which ends with the connection. Its standard error is logged, a limited number of lines
 * per second.
 */
export class StdioTransport implements Transport, DiscoveryLine {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  discovery: DiscoveryLine['discovery'] = 'none';
  /** Id of the pending `server/discover` request. */
  private discoveryId?: unknown;
  /** Ignores other text: programs print unrelated text to their output, which is no reason to close the connection. */
  private readonly answers = new AnswerReader(
    (message) => this.receiveMessage(message),
    (error) => this.onerror?.(error),
    this.remover,
  );
  private readonly splitter = new LineSplitter(maxAnswerBytes);
  private readonly output = new OrderedWork((error) => this.onerror?.(error as Error));
  private child?: ChildProcessWithoutNullStreams;
  private home?: string;
  private ending?: Promise<void>;
  private cleanup?: Promise<unknown>;
  private unsent = '';
  private sending?: Promise<void>;

  constructor(
    private readonly command: StdioCommand,
    private readonly guard: Pick<ProgramGuard, 'wordsFor' | 'handOver'>,
    private readonly note: (line: string) => void,
    private readonly remover?: CredentialRemover,
  ) {}

  /**
   * The SDK recognizes a program by `pid` and `stderr`, and then sends `initialize` when the first request stays
   * unanswered.
   */
  get pid(): number | undefined {
    return this.child?.pid;
  }

  get stderr(): Readable | undefined {
    return this.child?.stderr;
  }

  /**
   * Starts the program. Throws `remote_transport` when it cannot be started, and `unprocessable` when it is not
   * allowed.
   */
  async start(): Promise<void> {
    const prefix = await this.guard.wordsFor(this.command.limits);
    if (this.ending)
      throw new RialtoError('remote_transport', {
        message: 'the connection was closed before the program of the MCP server was started',
      });
    this.home = mkdtempSync(join(tmpdir(), 'rialto-mcp-'));
    const cwd = this.command.cwd ?? this.home;
    const env = environmentOf(this.command, this.home);
    if (!isThere(this.command, { path: env.PATH ?? '', cwd })) {
      this.cleanUp();
      throw new RialtoError('remote_transport', { message: `there is no program "${this.command.command}"`, hint });
    }
    this.guard.handOver(this.home);
    const [program, ...args] = [...prefix, this.command.command, ...this.command.args];
    const child = spawn(program!, args, {
      cwd,
      env,
      detached: true,
      windowsHide: true,
    });
    this.child = child;
    child.once('exit', () => this.cleanUp());
    child.on('error', (error) => this.onerror?.(error));
    child.stdin.on('error', (error) => this.onerror?.(error));
    this.readOutput(child);
    this.logStderr(child);
    try {
      await once(child, 'spawn');
    } catch (cause) {
      this.cleanUp();
      throw new RialtoError('remote_transport', { message: 'the program of the MCP server cannot be started', cause });
    }
  }

  /**
   * Queues a message. All messages of one turn of the event loop go out in one write, because a write costs more than
   * its content.
   */
  send(message: JSONRPCMessage): Promise<void> {
    if ('method' in message && 'id' in message) this.trackDiscovery(message);
    this.answers.sends(message);
    this.unsent += `${JSON.stringify(message)}\n`;
    this.sending ??= nextTurn().then(() => this.writeUnsent());
    return this.sending;
  }

  private trackDiscovery({ id, method }: JSONRPCRequest): void {
    if (method === 'server/discover' && this.discovery === 'none') {
      this.discovery = 'asked';
      this.discoveryId = id;
    } else if (method === 'initialize' && this.discovery === 'asked') this.discovery = 'unanswered';
  }

  private async writeUnsent(): Promise<void> {
    const { unsent } = this;
    const stdin = this.child?.stdin;
    this.unsent = '';
    this.sending = undefined;
    if (!stdin?.writable) throw new RialtoError('remote_transport', { message: 'the program of the MCP server ended' });
    if (!stdin.write(unsent)) await Promise.race([once(stdin, 'drain'), once(stdin, 'close')]);
  }

  /** Closes the standard input, then sends SIGTERM, then kills the whole process group. */
  close(): Promise<void> {
    this.ending ??= this.endProgram();
    return this.ending;
  }

  private async endProgram(): Promise<void> {
    const { child } = this;
    if (!child || child.pid === undefined) {
      this.cleanUp();
      return void (await this.cleanup);
    }
    const exited = hasExited(child) ? Promise.resolve() : once(child, 'exit').then(() => undefined);
    await this.sending?.catch(() => undefined);
    child.stdin.end();
    if (!(await happensWithin(exited, exitMs))) {
      this.signal('SIGTERM');
      await happensWithin(exited, killMs);
    }
    this.signal('SIGKILL');
    await happensWithin(exited, killMs);
    this.cleanUp();
    await this.cleanup;
  }

  private readOutput(child: ChildProcessWithoutNullStreams): void {
    child.stdout.on('data', (chunk: Buffer) => {
      // One poll of the event loop reads a pipe up to 32 times: a program that writes endlessly would block other work.
      child.stdout.pause();
      void this.output.run(() => this.readChunk(child, chunk));
      setImmediate(() => void this.output.run(() => void child.stdout.resume()));
    });
  }

  /** Reads the lines of a chunk, a few per turn of the event loop. */
  private async readChunk(child: ChildProcessWithoutNullStreams, chunk: Buffer): Promise<void> {
    let left = linesInOneTurn;
    for (const line of this.splitter.splitChunk(chunk)) {
      if (typeof line === 'string') this.answers.readText(line);
      else this.answers.tooLong(line);
      if (this.answers.isReading) await this.answers.read;
      if (--left > 0) continue;
      left = linesInOneTurn;
      await nextTurn();
    }
    if (this.splitter.excess <= maxLineBytes) return;
    child.stdout.removeAllListeners('data').resume();
    this.killForFault(`a line of more than ${maxLineBytes} bytes`);
  }

  private receiveMessage(message: JSONRPCMessage): void {
    if (this.discoveryId !== undefined && 'id' in message && message.id === this.discoveryId) {
      this.discoveryId = undefined;
      this.discovery = this.discovery === 'unanswered' ? 'late' : 'answered';
    }
    this.onmessage?.(message);
  }

  private logStderr(child: ChildProcessWithoutNullStreams): void {
    let left = loggedLinesPerSecond;
    const refill = setInterval(() => (left = loggedLinesPerSecond), 1_000).unref();
    child.once('close', () => clearInterval(refill));
    child.stderr.on('data', (chunk: Buffer) => {
      for (const line of chunk.toString('utf8').split('\n'))
        if (line.trim() !== '' && left-- > 0) this.note(line.slice(0, maxLoggedChars));
    });
  }

  private killForFault(what: string): void {
    this.onerror?.(new RialtoError('remote_invalid_response', { message: `the MCP server sent ${what}` }));
    this.signal('SIGKILL');
  }

  private signal(name: NodeJS.Signals): void {
    const pid = this.child?.pid;
    if (pid === undefined) return;
    try {
      process.kill(-pid, name);
    } catch {
      // no process of the group is left
    }
  }

  /** Cleans up, once. Processes that the program started may still run after it has exited. */
  private cleanUp(): void {
    const { home } = this;
    if (home === undefined) return;
    this.home = undefined;
    this.signal('SIGKILL');
    const closed = this.readRest().then(() => this.output.run(() => this.onclose?.()));
    this.cleanup = Promise.all([removed(home), closed]);
  }

  /** Reads what the program wrote before it exited. A process that it left behind may keep its output open. */
  private async readRest(): Promise<void> {
    const stdout = this.child?.stdout;
    if (!stdout || stdout.closed) return;
    const closed = new Promise<void>((resolve) => stdout.once('close', resolve));
    for (let waits = 0; waits < maxRestWaits; waits++)
      if ((await happensWithin(closed, restMs)) || !this.output.isBusy) break;
    stdout.destroy();
  }
}

function hasExited(child: ChildProcessWithoutNullStreams): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

async function happensWithin(event: Promise<void>, ms: number): Promise<boolean> {
  const timer = new AbortController();
  const timeout = sleep(ms, false, { signal: timer.signal }).catch(() => false);
  const isInTime = await Promise.race([event.then(() => true), timeout]);
  timer.abort();
  return isInTime;
}
