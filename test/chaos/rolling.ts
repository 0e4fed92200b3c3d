import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { changedBuild } from './processes/builds.js';
import type { Slot } from './processes/fleet.js';
import { Load } from './load.js';
import type { ChaosResult } from './result.js';
import type { Scene } from './scene.js';
import { judge } from './verdict.js';

/** Milliseconds until a load balancer knows that a process is leaving. */
const balancerMs = 150;

/** Builds the next version: this build with one more migration, which adds a column to the table of tasks. */
export function nextBuild(folder: string): string {
  const statement = "alter table a2a_tasks add column if not exists of_the_next text not null default 'nothing'";
  const migration = `class ExpandTasks1999000000000 {
  async up(runner) { await runner.query("${statement}"); }
}\n`;
  const list = 'export const migrations = [';
  const edits = [[list, `${list} ExpandTasks1999000000000,`]] as const;
  return changedBuild(join(folder, 'next-build'), 'src/platform/database/migrate', edits, migration);
}

/**
 * Deploys one version after the other under load, forth and back, on one database.
 * @param versions programs of the versions; undefined is this build.
 */
export async function runRolling(scene: Scene, versions: readonly (string | undefined)[]): Promise<ChaosResult> {
  const { history, fleet } = scene;
  const load = new Load(scene, 8, 150);
  const begun = Date.now();
  const codes: (number | null)[] = [];
  await sleep(1_000);
  for (const main of versions) {
    const [apis, workers] = [fleet.slots.filter(isApi), fleet.slots.filter((slot) => !isApi(slot))];
    for (const [index, api] of apis.entries())
      codes.push(...(await Promise.all([api, workers[index]!].map((slot) => replace(slot, main)))));
  }
  const seconds = Math.round((Date.now() - begun) / 1_000);
  await load.stop();
  const failed = history.sends.filter(({ status, mayRetry }) => status === undefined || (status >= 500 && !mayRetry));
  const refused = history.sends.filter(({ mayRetry }) => mayRetry === true).length;
  const unclean = codes.filter((code) => code !== 0).length;
  history.measures.push({
    invariant: 'I1',
    what: 'requests that failed because of a deploy',
    value: failed.length,
    most: 0,
  });
  history.measures.push({ invariant: 'I1', what: 'processes that did not end cleanly', value: unclean, most: 0 });
  const violations = await judge(scene);
  await load.close();
  return {
    violations,
    figures: { rolls: versions.length, seconds, requests: history.sends.length, failed: failed.length, refused },
  };
}

function isApi({ role }: Slot): boolean {
  return role === 'api';
}

async function replace(slot: Slot, main: string | undefined): Promise<number | null> {
  slot.isLeaving = true;
  await sleep(balancerMs);
  const code = await slot.kill('SIGTERM');
  slot.launch = { ...slot.launch, main };
  await slot.start();
  slot.isLeaving = false;
  return code;
}
