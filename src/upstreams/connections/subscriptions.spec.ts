import type { Client } from '@modelcontextprotocol/client';
import { Subscriptions } from './subscriptions.js';

describe('what a line does to hear of changes', () => {
  const asked: string[] = [];
  const client = (): Client =>
    ({
      getNegotiatedProtocolVersion: () => '2025-11-25',
      request: ({ method, params }: any) => Promise.resolve(void asked.push(`${method} ${params.uri}`)),
    }) as unknown as Client;

  /** Opens on the attempts that do not fail. */
  const line = (failures = 0) => {
    const seen = { opened: 0, updated: [] as string[] };
    const ears: Subscriptions = new Subscriptions(
      {
        open: () => {
          if (failures-- > 0) return Promise.reject(new Error('no room'));
          seen.opened++;
          return Promise.resolve(ears.opened(client()));
        },
        updated: (uri) => seen.updated.push(uri),
      },
      1_000,
    );
    return { ears, seen };
  };
  beforeEach(() => {
    jest.useFakeTimers();
    asked.length = 0;
  });
  afterEach(() => jest.useRealTimers());

  it('opens it again for what is watched, where it ended, and tells what may have changed meanwhile', async () => {
    const { ears, seen } = line();
    ears.watch('a:1');
    expect([seen.opened, asked]).toEqual([1, ['resources/subscribe a:1']]);
    ears.closed();
    expect(seen.updated).toEqual([]);
    await jest.advanceTimersByTimeAsync(1_000);
    expect([seen.opened, seen.updated]).toEqual([2, ['a:1']]);
    expect(asked).toEqual(['resources/subscribe a:1', 'resources/subscribe a:1']);
  });

  it('tries again until it opens', async () => {
    const { ears, seen } = line(3);
    ears.watch('a:1');
    await jest.advanceTimersByTimeAsync(2_500);
    expect(seen.opened).toBe(0);
    await jest.advanceTimersByTimeAsync(500);
    expect([seen.opened, seen.updated]).toEqual([1, []]);
  });

  it.each([
    ['nothing is watched', (ears: Subscriptions) => ears.unwatch('a:1')],
    ['the line is never opened again', (ears: Subscriptions) => ears.end()],
  ])('opens it no more when %s', async (_, end) => {
    const { ears, seen } = line();
    ears.watch('a:1');
    end(ears);
    ears.closed();
    await jest.advanceTimersByTimeAsync(5_000);
    expect([seen.opened, seen.updated]).toEqual([1, []]);
  });
});
