import { join } from 'node:path';
import { Random } from '../support/fuzz/random.js';
import { defects } from './defects/all.js';
import type { House } from './parts.js';
import type { ChaosResult } from './result.js';
import type { Violation } from './checker.js';
import { changedBuild } from './processes/builds.js';
import { exercised, preambleOf, type Defect } from './defects/defect.js';
import { openScene } from './scene.js';
import { scenarioOf, scenarios } from './scenarios/all.js';
import type { Scenario } from './scenarios/scenario.js';
import { Redis } from './processes/servers.js';
import { judge } from './verdict.js';

/** The result of a run with a planted defect. Without `found`, `why` says why the defect was missed. */
interface Caught {
  readonly defect: Defect;
  readonly ms: number;
  readonly found?: Violation;
  readonly why?: string;
}

/** Plays every scenario on one deployment without defects, which shows that the scenarios alone cause no violation. */
export async function playAll(house: House): Promise<ChaosResult> {
  const playable = scenarios.filter(({ needsRedis }) => house.redis || !needsRedis);
  const { violations } = await play(house, 'control', playable);
  return { violations, figures: { scenarios: playable.length } };
}

/** Plants each defect in a separate deployment. A missed defect is a violation. */
export async function plantAll(house: House): Promise<ChaosResult> {
  const playable = defects.filter(({ scenario }) => house.redis || !scenarioOf(scenario).needsRedis);
  const waiting = new Random(house.form.seed).shuffled([...playable.entries()]);
  const until = Date.now() + house.form.mostSeconds.defects * 1_000;
  const missed: Violation[] = [];
  const worker = async (): Promise<void> => {
    while (waiting.length > 0 && Date.now() < until) {
      const next = waiting.shift()!;
      const { defect, ms, found, why } = await plantAndPlay(house, next[1], next[0]);
      house.say(`    ${(ms / 1_000).toFixed(1)} s  ${defect.name}: ${found?.what ?? `MISSED, ${why}`}`);
      if (!found) missed.push({ invariant: defect.breaks, what: `${defect.name}: ${why}` });
    }
  };
  await Promise.all(Array.from({ length: house.form.lanes }, worker));
  const planted = playable.length - waiting.length;
  return { violations: missed, figures: { planted, caught: planted - missed.length, left: waiting.length } };
}

async function plantAndPlay(house: House, defect: Defect, index: number): Promise<Caught> {
  const { breaks, scenario } = defect;
  const begun = Date.now();
  const { violations, logs } = await play(house, `defect_${index}`, [scenarioOf(scenario)], defect);
  const ms = Date.now() - begun;
  if (!logs.includes(exercised(defect))) return { defect, ms, why: 'the planted code never ran' };
  const found = violations.find(({ invariant }) => invariant === breaks);
  if (found) return { defect, ms, found };
  const others = violations.map(({ invariant }) => invariant).join(', ');
  return { defect, ms, why: `no violation of ${breaks}${others === '' ? '' : `, but of ${others}`}` };
}

async function play(
  { folder, form, postgres, template, redis: common }: House,
  name: string,
  plays: readonly Scenario[],
  defect?: Defect,
): Promise<{ violations: Violation[]; logs: string }> {
  const databaseUrl = await postgres.create(name, template);
  const redis = common ? await Redis.start(join(folder, `redis-${name}`)) : undefined;
  const scene = await openScene({
    folder: join(folder, name),
    seed: form.seed,
    databaseUrl,
    redisUrl: redis?.url,
    roles: plays.length > 1 || plays.some(({ needsTwo }) => needsTwo) ? ['all', 'all'] : ['all'],
    ...(defect && {
      main: changedBuild(join(folder, `build-${name}`), `src/${defect.file}`, defect.edits, preambleOf(defect)),
    }),
  });
  try {
    const [a, b = a] = scene.fleet.slots;
    for (const one of plays) await one.play({ scene, a: a!, b: b!, redis });
    return { violations: await judge(scene, defect ? 8_000 : 40_000), logs: scene.fleet.logs() };
  } finally {
    await scene.close();
    await redis?.kill();
    await postgres.drop(name);
  }
}
