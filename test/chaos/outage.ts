import { setTimeout as sleep } from 'node:timers/promises';
import { Load } from './load.js';
import { percentile, type ChaosResult } from './result.js';
import type { Scene } from './scene.js';
import type { Redis } from './servers.js';
import { judge } from './verdict.js';

const mostMs = 500;
/** Processes that have just started are slow by themselves. */
const warmUpMs = 4_000;
/** Of an answer to a question whose task was canceled meanwhile: a true answer. */
const tooLate = '-32004';

/** Redis is gone, refusing for one half of the time and silent for the other: everything is accepted at once, and nothing is lost. */
export async function runOutage(scene: Scene, redis: Redis, seconds: number): Promise<ChaosResult> {
  const { history } = scene;
  const load = new Load(scene, 8, 200);
  await sleep(warmUpMs);
  const before = history.sends.length;
  history.faults.push({ kind: 'redis', what: 'gone', at: Date.now(), until: Date.now() + seconds * 1_000 });
  await redis.kill();
  await sleep(seconds * 500);
  await redis.up();
  redis.freeze();
  await sleep(seconds * 500);
  const sends = history.sends.slice(before).filter(({ agent }) => agent !== 'forbidden');
  redis.thaw();
  await load.stop();
  const refused = sends.filter(
    ({ status, errorCode }) => status !== 200 || (errorCode !== undefined && errorCode !== tooLate),
  );
  const answers = new Set(
    refused.map(({ agent, status, errorCode }) => `${agent} ${status ?? 'nothing'} ${errorCode ?? ''}`),
  );
  // What waits for its task is as slow as the task; an accept and an echo are not.
  const quick = sends.filter(({ agent, ms }) => ms !== undefined && agent === 'echo').map(({ ms }) => ms);
  const p99 = percentile(quick, 0.99);
  history.measures.push({
    invariant: 'I1',
    what: `sends that were not taken while Redis was gone (${[...answers].join(', ')})`,
    value: refused.length,
    most: 0,
  });
  history.measures.push({
    invariant: 'I1',
    what: 'p99 of a send while Redis was gone, in ms',
    value: p99,
    most: mostMs,
  });
  const violations = await judge(scene);
  await load.close();
  return {
    violations,
    figures: {
      seconds,
      sends: sends.length,
      answered: sends.length - refused.length,
      p50: percentile(quick, 0.5),
      p99,
      tasks: history.rows.tasks.length,
    },
  };
}
