import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Load } from '../load.js';
import type { ChaosResult } from '../result.js';
import { embeddedUrl, openScene } from '../scene.js';
import { judge } from '../verdict.js';

/**
 * Runs one process with an embedded PostgreSQL that also carries the queue, as `npm start` does, and kills and restarts
 * it.
 */
export async function runEmbedded(folder: string, seed: number, kills: number): Promise<ChaosResult> {
  const scene = await openScene({ folder, seed, roles: ['all'] });
  try {
    const { history, rows, fleet, random } = scene;
    const [slot] = fleet.slots;
    const load = new Load(scene, 6);
    for (let count = 0; count < kills; count++) {
      await sleep(1_000 + random.whole(1_000));
      const fault = { kind: 'kill', what: 'the whole gateway', at: Date.now(), until: Infinity };
      history.faults.push(fault);
      await slot!.kill();
      await slot!.start();
      fault.until = Date.now() + 500;
      rows.moveTo(await embeddedUrl(join(folder, 'data')));
    }
    await load.stop();
    const violations = await judge(scene);
    await load.close();
    return { violations, figures: { kills, tasks: history.rows.tasks.length, sends: history.sends.length } };
  } finally {
    await scene.close();
  }
}
