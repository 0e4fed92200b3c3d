import type { JobProducer } from '../../platform/jobs/job-producer.js';
import { DeliveryTrigger } from './delivery-trigger.js';

describe('DeliveryTrigger', () => {
  const enqueued: string[] = [];
  const trigger = new DeliveryTrigger({
    tryEnqueue: (_: string, { configId }: { configId: string }) => Promise.resolve(enqueued.push(configId) > 0),
  } as unknown as JobProducer);
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
      trigger.remember(key(`forgotten-${one}`));
      trigger.forget(key(`forgotten-${one}`));
    }
    trigger.remember(key('current'));
    expect(await enqueuedOnEvent()).toEqual(['current']);
    for (let one = 0; one < 500; one++) trigger.remember(key(`unused-${one}`));
    trigger.remember(key('current'));
    expect(await enqueuedOnEvent()).toEqual([
      ...Array.from({ length: 9 }, (_, one) => `unused-${one + 491}`),
      'current',
    ]);
  });
});
