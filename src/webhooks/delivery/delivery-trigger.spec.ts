import type { JobProducer } from '../../platform/jobs/job-producer.js';
import { DeliveryTrigger } from './delivery-trigger.js';

describe('the bell of webhooks', () => {
  const rung: string[] = [];
  const bell = new DeliveryTrigger({
    send: (_: string, { configId }: { configId: string }) => Promise.resolve(rung.push(configId) > 0),
  } as unknown as JobProducer);
  const key = (configId: string) => ({ taskId: 't', configId });
  const heard = async (): Promise<string[]> => {
    rung.length = 0;
    bell.onEvent({ taskId: 't' } as never);
    await jest.advanceTimersByTimeAsync(100);
    return [...rung];
  };
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('rings for those that a task has, not for all that it ever had', async () => {
    for (let one = 0; one < 500; one++) {
      bell.remember(key(`gone-${one}`));
      bell.forget(key(`gone-${one}`));
    }
    bell.remember(key('here'));
    expect(await heard()).toEqual(['here']);
    for (let one = 0; one < 500; one++) bell.remember(key(`unheard-of-${one}`));
    bell.remember(key('here'));
    expect(await heard()).toEqual([...Array.from({ length: 9 }, (_, one) => `unheard-of-${one + 491}`), 'here']);
  });
});
