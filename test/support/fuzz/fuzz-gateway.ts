import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventually } from '../gateway/eventually.js';
import type { TestGateway } from '../gateway/gateway.js';

/** A turn of the event loop that took long. Milliseconds; `at` is when it was over, since the epoch. */
export interface Stall {
  readonly at: number;
  /** How late the loop was. */
  readonly lagMs: number;
  /** Processor time of its thread: the rest it waited for its turn. */
  readonly usedMs: number;
  /** Of that, what the garbage collector took. */
  readonly gcMs: number;
}

/** What the loop was like since the last summary, in milliseconds. */
export interface LoopSummary {
  readonly summary: { readonly p50: number; readonly p99: number; readonly p999: number; readonly max: number };
  /** Bytes of memory. */
  readonly rss: number;
  /** Somebody put a member on every object. */
  readonly polluted: boolean;
}

/** A gateway in a process of its own, which watches its event loop. */
export interface WatchedGateway {
  readonly url: string;
  readonly port: number;
  /** Every stall since the start. */
  stalls(): Stall[];
  /** Since the last summary, or the start. */
  summary(): Promise<LoopSummary>;
  /** Stops it as an operator would; what it said in all. */
  stop(): Promise<{ code: number | null; lines: string[] }>;
}

/** Starts one on the database, the keys and the queues of another. */
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
      if (child.exitCode !== null) throw new Error(`it died: ${JSON.stringify(await ended)}`);
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
