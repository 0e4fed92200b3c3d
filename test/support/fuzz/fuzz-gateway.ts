import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventually } from '../gateway/eventually.js';
import type { TestGateway } from '../gateway/gateway.js';

/** A slow turn of the event loop, in milliseconds. `at` is its end, in milliseconds since the epoch. */
export interface Stall {
  readonly at: number;
  /** Delay of the event loop. */
  readonly lagMs: number;
  /** CPU time of its thread. During the rest of the delay the thread waited for a CPU. */
  readonly usedMs: number;
  /** The part of the CPU time that garbage collection took. */
  readonly gcMs: number;
}

/** Delays of the event loop since the last summary, in milliseconds. */
export interface LoopSummary {
  readonly summary: { readonly p50: number; readonly p99: number; readonly p999: number; readonly max: number };
  /** Resident memory in bytes. */
  readonly rss: number;
  /** True when `Object.prototype` has the member `polluted`. */
  readonly polluted: boolean;
}

/** A gateway in a separate process that measures its event loop. */
export interface WatchedGateway {
  readonly url: string;
  readonly port: number;
  /** Returns all stalls since the start. */
  stalls(): Stall[];
  /** Returns the delays since the last summary or the start. */
  summary(): Promise<LoopSummary>;
  /** Stops the gateway with SIGTERM, as an operator does, and returns all its output. */
  stop(): Promise<{ code: number | null; lines: string[] }>;
}

/** Starts a gateway on the database, the keys and the queues of another one. */
export async function startWatchedGateway(home: TestGateway): Promise<WatchedGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'rialto-fuzz-'));
  const file = join(folder, 'loop');
  const watcher = pathToFileURL(join(process.cwd(), 'test/support/fuzz/fuzz-loop.mjs')).href;
  const { child, ready, ended } = home.beside({
    NODE_OPTIONS: `--import ${watcher}`,
    FUZZ_LOOP_FILE: file,
  });
  const url = await ready;
  const lines = (): (Stall | LoopSummary)[] => {
    try {
      return readFileSync(file, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Stall | LoopSummary);
    } catch {
      return [];
    }
  };
  const summaries = (): LoopSummary[] => lines().filter((line) => 'summary' in line);
  return {
    url,
    port: Number(new URL(url).port),
    stalls: () => lines().filter((line) => 'lagMs' in line),
    summary: async () => {
      const known = summaries().length;
      if (child.exitCode !== null) throw new Error(`the gateway ended: ${JSON.stringify(await ended)}`);
      child.kill('SIGWINCH');
      const all = await eventually(summaries, ({ length }) => length > known);
      return all.at(-1)!;
    },
    stop: async () => {
      child.kill('SIGTERM');
      const { code, stdout, stderr } = await ended;
      rmSync(folder, { recursive: true, force: true });
      return { code, lines: [...stdout.split('\n'), ...stderr] };
    },
  };
}
