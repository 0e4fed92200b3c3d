import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ofTheRun } from '../leftovers.js';
import { freePort } from './servers.js';

const main = join(process.cwd(), 'dist', 'src', 'main.js');
const startTimeoutMs = 90_000;
const readyLine = 'Rialto is ready';

export interface Launch {
  /** The program; by default that of this build. */
  readonly main?: string;
  readonly env?: Record<string, string>;
}

/** One place in the fleet: a process with a fixed role and port, which is restarted many times. */
export class Slot {
  isReady = false;
  /** True while a load balancer sends it no new requests. */
  isLeaving = false;
  launch: Launch = {};
  private child?: ChildProcess;
  private starting?: Promise<void>;
  starts = 0;

  constructor(
    readonly name: string,
    readonly role: 'api' | 'worker' | 'all',
    private readonly port: number,
    private readonly env: Record<string, string>,
    readonly logFile: string,
  ) {}

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get pid(): number | undefined {
    return this.child?.pid;
  }

  /** Resolves when the process is ready. Throws with the end of its log when it ends before or takes too long. */
  start(): Promise<void> {
    this.starting ??= this.run().finally(() => (this.starting = undefined));
    return this.starting;
  }

  private async run(): Promise<void> {
    this.starts++;
    const env = { ...this.env, RIALTO_ROLE: this.role, PORT: String(this.port), ...this.launch.env };
    const child = spawn(process.execPath, [this.launch.main ?? main], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child = ofTheRun(child);
    const log = createWriteStream(this.logFile, { flags: 'a' });
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    const gone = once(child, 'close').then(() => {
      log.end();
      if (this.child === child) this.isReady = false;
    });
    const ready = new Promise<true>((resolve) => {
      let end = '';
      child.stdout.on('data', (chunk: Buffer) => {
        const output = end + chunk.toString();
        if (output.includes(readyLine)) resolve(true);
        end = output.slice(1 - readyLine.length);
      });
    });
    const timeout = sleep(startTimeoutMs, undefined, { ref: false });
    const isReady = await Promise.race([ready, gone, timeout]);
    if (this.child === child) this.isReady = isReady === true;
    if (isReady === true || child.killed) return;
    child.kill('SIGKILL'); // the next start needs its port
    throw new Error(`${this.name} did not start: ${readFileSync(this.logFile, 'utf8').slice(-2_000)}`);
  }

  /** Sends the signal and resolves when the process has ended. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> {
    const { child } = this;
    this.isReady = false;
    if (!child || child.exitCode !== null || child.signalCode !== null) return null;
    const ended = once(child, 'close');
    child.kill(signal);
    const [code] = (await ended) as [number | null];
    return code;
  }

  freeze(): void {
    this.isReady = false;
    this.child?.kill('SIGSTOP');
  }

  thaw(): void {
    this.child?.kill('SIGCONT');
    this.isReady = true;
  }
}

/** The processes of one deployment, with one database, one queue and one data folder. */
export class Fleet {
  private constructor(readonly slots: readonly Slot[]) {}

  static async make(folder: string, roles: readonly Slot['role'][], env: Record<string, string>): Promise<Fleet> {
    mkdirSync(folder, { recursive: true });
    const slots: Slot[] = [];
    for (const [index, role] of roles.entries()) {
      const name = `${role}-${index + 1}`;
      slots.push(new Slot(name, role, await freePort(), { ...baseEnv(folder), ...env }, join(folder, `${name}.log`)));
    }
    return new Fleet(slots);
  }

  async start(): Promise<void> {
    await Promise.all(this.slots.map((slot) => slot.start()));
  }

  /** The processes to which callers may send now. */
  get doors(): Slot[] {
    return this.slots.filter(({ role, isReady, isLeaving }) => role !== 'worker' && isReady && !isLeaving);
  }

  /** Returns the complete log of all processes. */
  logs(): string {
    return this.slots.map(({ logFile }) => readFileSync(logFile, 'utf8')).join('\n');
  }

  async stop(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await Promise.all(this.slots.map((slot) => slot.kill(signal)));
  }
}

function baseEnv(folder: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    NODE_ENV: 'test',
    ...(process.env.NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }),
    METRICS_PORT: '0',
    RIALTO_DATA_DIR: join(folder, 'data'),
    RIALTO_LOG_LEVEL: 'info',
    RIALTO_RATE_LIMIT_PRINCIPAL: '1000000',
    RIALTO_RATE_LIMIT_ORG: '10000000',
    // One server acts as all receivers.
    RIALTO_WEBHOOK_MAX_PER_HOST: '64',
    RIALTO_WEBHOOK_MAX_PER_ORG: '64',
  };
}
