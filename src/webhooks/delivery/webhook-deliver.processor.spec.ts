import { unseenRun } from '../../platform/jobs/job-run.js';
import type { ConfigKey } from './delivery.store.js';
import type { DeliveryTrigger } from './delivery-trigger.js';
import type { Round, WebhookDeliverer } from './webhook-deliverer.js';
import { WebhookDeliverProcessor } from './webhook-deliver.processor.js';

describe('a job with several configurations', () => {
  const keys = (count: number): ConfigKey[] =>
    Array.from({ length: count }, (_, n) => ({ taskId: 't', configId: `c${n}` }));
  const given = (deliverDue: (key: ConfigKey) => Promise<Round>) => {
    const lines: string[] = [];
    const again: [number, string][] = [];
    const dueNow: string[] = [];
    const deliverer = { deliverDue, makeDueNow: async ({ configId }: ConfigKey) => void dueNow.push(configId) };
    const trigger = { enqueueIn: (ms: number, { configId }: ConfigKey) => again.push([ms, configId]) };
    const processor = new WebhookDeliverProcessor(
      deliverer as unknown as WebhookDeliverer,
      trigger as unknown as DeliveryTrigger,
    );
    const handle = (count: number, byHand = false) =>
      processor.handle({ configs: keys(count) }, { ...unseenRun, byHand, log: (line) => lines.push(line) });
    return { handle, lines, again, dueNow };
  };

  it('delivers all of them, also when some fail, and names the failures', async () => {
    const { handle, lines, again } = given(async ({ configId }) => {
      if (configId === 'c1') return { delivered: 1, flaw: 'status_503: c1', againMs: 5_000 };
      return { delivered: 2 };
    });
    await expect(handle(4)).rejects.toThrow('status_503: c1');
    expect(lines).toEqual(['4 configurations: 7 delivered, 1 of them failed']);
    expect(again).toEqual([[5_000, 'c1']]);
  });

  it('names at most five failures', async () => {
    const { handle } = given(async ({ configId }) => ({ delivered: 0, flaw: configId }));
    await expect(handle(7)).rejects.toThrow(/^c0; c1; c2; c3; c4$/);
  });

  it('fails when one could not be done, after the others', async () => {
    const { handle, lines } = given(async ({ configId }) => {
      if (configId === 'c0') throw new Error('the database is away');
      return { delivered: 1 };
    });
    await expect(handle(5)).rejects.toThrow('the database is away');
    expect(lines).toEqual(['5 configurations: 4 delivered, 0 of them failed']);
  });

  it('makes waiting retries due when an operator promotes it', async () => {
    const { handle, dueNow } = given(async () => ({ delivered: 1 }));
    expect(await handle(4, true)).toEqual({ configurations: 4, delivered: 4 });
    expect(dueNow).toEqual(['c0', 'c1', 'c2', 'c3']);
  });

  it('runs no more of them at once than workers run jobs', async () => {
    let [running, most] = [0, 0];
    const { handle } = given(async () => {
      most = Math.max(most, ++running);
      await new Promise(setImmediate);
      running--;
      return { delivered: 1 };
    });
    await Promise.all([handle(100), handle(100)]);
    expect(most).toBe(128);
  });
});
