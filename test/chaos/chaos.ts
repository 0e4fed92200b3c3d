import { setTimeout as sleep } from 'node:timers/promises';
import { allMended, scheduleOf, strike, type Broken, type Plan } from './faults.js';
import { Load } from './load.js';
import type { ChaosResult } from './result.js';
import { Takeovers } from './takeovers.js';
import { judge } from './verdict.js';

const ownedAgainMs = 2_000;

export interface ChaosOptions extends Broken {
  /** The plans, which run one after the other. */
  readonly plans: readonly Plan[];
  readonly callers: number;
  /** Average milliseconds between two faults. */
  readonly paceMs: number;
  /** Maximum duration of a plan in seconds. */
  readonly planSeconds: number;
}

/** Runs load and faults at the same time, then lets the system come to rest, then checks the history. */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const { scene, postgres, redis, plans, callers, paceMs, planSeconds } = options;
  const { history, random } = scene;
  const load = new Load(scene, callers);
  const takeovers = new Takeovers(scene);
  const schedules = plans.map((plan) => scheduleOf(plan, random));
  const struck: string[] = [];
  const begun = Date.now();
  for (const schedule of schedules) {
    const until = Date.now() + planSeconds * 1_000;
    for (const kind of schedule) {
      if (Date.now() > until) break;
      await strike(kind, { scene, postgres, redis });
      struck.push(kind);
      await sleep(paceMs / 2 + random.whole(paceMs));
    }
  }
  await allMended(scene);
  const tookMs = Date.now() - begun;
  await load.stop();
  await allMended(scene);
  await takeovers.close();
  const { tasks } = takeovers.figures();
  if (tasks.count > 0)
    history.measures.push({
      invariant: 'I1',
      what: 'p99 from kill -9 to the takeover in ms',
      value: tasks.p99,
      most: ownedAgainMs,
    });
  const violations = await judge(scene);
  await load.close();
  const { rows } = history;
  return {
    violations,
    figures: {
      seconds: Math.round(tookMs / 1_000),
      faults: countOf(struck),
      left: schedules.flat().length - struck.length,
      tasks: rows.tasks.length,
      failed: rows.tasks.filter(({ state }) => state === 'failed').length,
      sends: history.sends.length,
      broken: history.sends.filter(({ status }) => status === undefined).length,
      streams: history.streams.length,
      webhooks: history.posts.length,
      remoteSends: history.remoteSends.length,
      takeovers: takeovers.figures(),
    },
  };
}

function countOf(kinds: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const kind of kinds) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}
