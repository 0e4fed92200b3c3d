import type { JobPayload } from '../../kernel/jobs.js';
import type { JobProducer } from '../../platform/jobs/job-producer.js';
import type { QueueState } from '../../platform/jobs/queue-state.js';
import { DeliveryTrigger } from './delivery-trigger.js';

describe('DeliveryTrigger', () => {
  const enqueued: string[] = [];
  /** The number of configurations of each job. */
  const sizes: number[] = [];
  const producer = {
    tryEnqueue: (_: string, payload: JobPayload<'webhook.deliver'>) => {
      const configs = 'configs' in payload ? payload.configs : [payload];
      enqueued.push(...configs.map(({ configId }) => configId));
      sizes.push(configs.length);
      return new Promise((resolve) => setTimeout(resolve, 1, true));
    },
  } as unknown as JobProducer;
  const trigger = new DeliveryTrigger(producer, {} as QueueState);
  const key = (configId: string) => ({ taskId: 't', configId });
  const enqueuedOnEvent = async (): Promise<string[]> => {
    enqueued.length = sizes.length = 0;
    trigger.onEvent({ taskId: 't' } as never);
    await jest.advanceTimersByTimeAsync(100);
    return [...enqueued];
  };
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('enqueues the current configurations of a task, not the forgotten ones', async () => {
    for (let one = 0; one < 500; one++) {
      trigger.rememberConfig(key(`forgotten-${one}`));
      trigger.forgetConfig(key(`forgotten-${one}`));
    }
    trigger.rememberConfig(key('current'));
    expect(await enqueuedOnEvent()).toEqual(['current']);
    for (let one = 0; one < 500; one++) trigger.rememberConfig(key(`unused-${one}`));
    trigger.rememberConfig(key('current'));
    expect(await enqueuedOnEvent()).toEqual([
      ...Array.from({ length: 9 }, (_, one) => `unused-${one + 491}`),
      'current',
    ]);
    expect(sizes).toEqual([1, 9]);
  });
});
