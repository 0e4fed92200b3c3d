import { setTimeout as sleep } from 'node:timers/promises';
import { Load } from './load.js';
import { percentile, type ChaosResult } from './result.js';
import type { Scene } from './scene.js';
import type { Redis } from './processes/servers.js';
import { judge } from './verdict.js';

const mostMs = 500;
/** Processes are slow just after their start. */
const warmUpMs = 4_000;
/** Error code of an answer to a question after its task was canceled. This error is correct. */
const tooLate = '-32004';

/**
 * Runs without Redis: for one half of the time it refuses connections, for the other half it does not answer. All sends
 * must be accepted at once, and no task may be lost.
 */
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
  // A send that waits for its task takes as long as the task, so only echo tasks are measured.
  const quick = sends.filter(({ agent, ms }) => ms !== undefined && agent === 'echo').map(({ ms }) => ms);
  const p99 = percentile(quick, 0.99);
  history.measures.push({
    invariant: 'I1',
    what: `sends that were not accepted while Redis was down (${[...answers].join(', ')})`,
    value: refused.length,
    most: 0,
  });
  history.measures.push({
    invariant: 'I1',
    what: 'p99 of a send while Redis was down, in ms',
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
