import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { words, type Scenario } from './scenario.js';

/** Scenarios of outgoing requests. */
export const outwardScenarios: readonly Scenario[] = [
  {
    name: 'receivers',
    play: async ({ scene: { callers, pushTo } }) => {
      const kinds = ['slow', 'slow', 'refuse-once', 'redirect-once', 'fast'];
      const sends = kinds.map((kind) =>
        callers.alpha.send({ agent: 'steps', payload: words(), push: pushTo(`${kind}/${randomUUID()}`), echoes: true }),
      );
      await Promise.all(sends);
      await sleep(3_500);
    },
  },
  {
    // Two messages are answered long before the process is killed; the answer to the third never arrives.
    name: 'remote',
    play: async ({ scene: { callers, history }, a }) => {
      const payloads = [words('answer=50 work=6000 '), words('answer=50 work=5500 '), words('answer=5000 work=500 ')];
      const sends = payloads.map((payload) => callers.alpha.tryToSend(a, { agent: 'remote', payload, wait: true }));
      await sleep(2_400);
      history.faults.push({ kind: 'kill', what: a.name, at: Date.now(), until: Date.now() + 500 });
      await a.kill();
      await Promise.all([...sends, a.start()]);
    },
  },
];
