import { join } from 'node:path';
import { runChaos } from './chaos.js';
import { plantAll, playAll } from './defects.js';
import { runEmbedded } from './processes/embedded.js';
import type { Plan } from './faults.js';
import type { Form } from './form.js';
import { runOutage } from './outage.js';
import { runRaces } from './races.js';
import type { ChaosResult } from './result.js';
import { nextBuild, runRolling } from './rolling.js';
import { openScene, type Scene, type SceneOptions } from './scene.js';
import type { Postgres, Redis } from './processes/servers.js';

/** The resources that the parts of a run share. */
export interface House {
  readonly folder: string;
  readonly form: Form;
  readonly postgres: Postgres;
  /** Absent when the machine has no redis-server. */
  readonly redis?: Redis;
  /** The name of a migrated, empty database that is copied for each part. */
  readonly template: string;
  readonly say: (line: string) => void;
}

const four = ['api', 'api', 'worker', 'worker'] as const;

/** Parts by name. The parts of one group run at the same time. */
export type Group = Readonly<Record<string, () => Promise<ChaosResult>>>;

/** Returns the parts of a run, in order. */
export function partsOf(house: House): readonly Group[] {
  const { folder, form, postgres, redis } = house;
  const { seed, paceMs } = form;
  const pace = { callers: 12, paceMs, planSeconds: form.mostSeconds.plan };
  const redisUrl = redis?.url;
  const inPlans = (scene: Scene): Promise<ChaosResult> => {
    const plans = redis ? form.plans : form.plans.map(withoutRedis);
    return runChaos({ scene, postgres, redis, plans, ...pace });
  };
  const ofQueue = (scene: Scene): Promise<ChaosResult> =>
    runChaos({ scene, postgres, plans: [form.queuePlan], ...pace });
  const outage = redis && {
    outage: () =>
      onScene(house, 'outage', { roles: four, redisUrl }, (scene) => runOutage(scene, redis, form.outageSeconds)),
  };
  return [
    { chaos: () => onScene(house, 'chaos', { roles: four, redisUrl }, inPlans) },
    { queue: () => onScene(house, 'queue', { roles: four }, ofQueue) },
    { embedded: () => runEmbedded(join(folder, 'embedded'), seed, form.embeddedKills) },
    // Both wait more than they work.
    { ...outage, control: () => playAll(house) },
    {
      races: () => onScene(house, 'races', { roles: ['api', 'api'], redisUrl }, (scene) => runRaces(scene, form.races)),
    },
    { deploys: () => deploys(house, redisUrl) },
    { defects: () => plantAll(house) },
  ];
}

function deploys(house: House, redisUrl: string | undefined): Promise<ChaosResult> {
  const { before, rolls } = house.form;
  const next = nextBuild(house.folder);
  const versions = Array.from({ length: rolls }, (_, index) => (index % 2 === 0 ? next : before));
  return onScene(house, 'deploys', { roles: four, redisUrl, main: before }, (scene) => runRolling(scene, versions));
}

/** Runs a part on a separate database and folder. */
async function onScene(
  { folder, form, postgres, template }: Pick<House, 'folder' | 'form' | 'postgres' | 'template'>,
  name: string,
  options: Pick<SceneOptions, 'roles' | 'redisUrl' | 'main'>,
  play: (scene: Scene) => Promise<ChaosResult>,
): Promise<ChaosResult> {
  const databaseUrl = await postgres.create(name, template);
  const scene = await openScene({ ...options, folder: join(folder, name), seed: form.seed, databaseUrl });
  try {
    return await play(scene);
  } finally {
    await scene.close();
    await postgres.drop(name);
  }
}

function withoutRedis({ redisKill: _k, redisFlush: _f, redisFreeze: _z, ...plan }: Plan): Plan {
  return plan;
}
