import { setTimeout as sleep } from 'node:timers/promises';
import type { Violation } from './checker.js';
import { allMended, scheduleOf, strike, type Broken, type Plan } from './faults.js';
import { Load } from './load.js';
import { Takeovers } from './takeovers.js';
import { judge } from './verdict.js';

export interface ChaosOptions extends Broken {
  readonly plan: Plan;
  readonly callers: number;
  /** Between two faults, on average. */
  readonly paceMs: number;
}

export interface ChaosResult {
  readonly violations: Violation[];
  readonly figures: Record<string, unknown>;
}

/** Load and faults at once, then rest, then the judgement. */
export async function runChaos({ scene, postgres, redis, plan, callers, paceMs }: ChaosOptions): Promise<ChaosResult> {
  const { history, random } = scene;
  const load = new Load(scene, callers);
  const takeovers = new Takeovers(scene);
  const schedule = scheduleOf(plan, random);
  const begun = Date.now();
  for (const kind of schedule) {
    await strike(kind, { scene, postgres, redis });
    await sleep(paceMs / 2 + random.whole(paceMs));
  }
  await allMended(scene);
  const tookMs = Date.now() - begun;
  await load.stop();
  await allMended(scene);
  const violations = await judge(scene);
  await load.close();
  await takeovers.close();
  const { rows } = history;
  return {
    violations,
    figures: {
      seconds: Math.round(tookMs / 1_000),
      faults: plan,
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
