import type { JobProducer } from '../../platform/jobs/job-producer.js';
import type { QueueState } from '../../platform/jobs/queue-state.js';
import { DeliveryTrigger } from './delivery-trigger.js';

describe('DeliveryTrigger', () => {
  const enqueued: string[] = [];
  const producer = {
    tryEnqueue: (_: string, { configId }: { configId: string }) => Promise.resolve(enqueued.push(configId) > 0),
  } as unknown as JobProducer;
  const trigger = new DeliveryTrigger(producer, {} as QueueState);
  const key = (configId: string) => ({ taskId: 't', configId });
  const enqueuedOnEvent = async (): Promise<string[]> => {
    enqueued.length = 0;
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
  });
});
