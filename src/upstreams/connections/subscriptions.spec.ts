import type { Client } from '@modelcontextprotocol/client';
import { Subscriptions } from './subscriptions.js';

describe('Subscriptions', () => {
  const sent: string[] = [];
  const client = (): Client =>
    ({
      getNegotiatedProtocolVersion: () => '2025-11-25',
      request: ({ method, params }: any) => Promise.resolve(void sent.push(`${method} ${params.uri}`)),
    }) as unknown as Client;

  /** Builds subscriptions with a connection that fails to open the given number of times. */
  const subscribed = (failures = 0) => {
    const seen = { opened: 0, updated: [] as string[] };
    const subscriptions: Subscriptions = new Subscriptions(
      {
        open: () => {
          if (failures-- > 0) return Promise.reject(new Error('no room'));
          seen.opened++;
          return Promise.resolve(subscriptions.connectionOpened(client()));
        },
        updated: (uri) => seen.updated.push(uri),
      },
      1_000,
    );
    return { subscriptions, seen };
  };
  beforeEach(() => {
    jest.useFakeTimers();
    sent.length = 0;
  });
  afterEach(() => jest.useRealTimers());

  it('reopens a closed connection for watched resources, and reports that they may have changed', async () => {
    const { subscriptions, seen } = subscribed();
    subscriptions.watch('a:1');
    expect([seen.opened, sent]).toEqual([1, ['resources/subscribe a:1']]);
    subscriptions.closed();
    expect(seen.updated).toEqual([]);
    await jest.advanceTimersByTimeAsync(1_000);
    expect([seen.opened, seen.updated]).toEqual([2, ['a:1']]);
    expect(sent).toEqual(['resources/subscribe a:1', 'resources/subscribe a:1']);
  });

  it('retries until the connection opens', async () => {
    const { subscriptions, seen } = subscribed(3);
    subscriptions.watch('a:1');
    await jest.advanceTimersByTimeAsync(2_500);
    expect(seen.opened).toBe(0);
    await jest.advanceTimersByTimeAsync(500);
    expect([seen.opened, seen.updated]).toEqual([1, []]);
  });

  it.each([
    ['nothing is watched', (subscriptions: Subscriptions) => subscriptions.unwatch('a:1')],
    ['the connection is closed for good', (subscriptions: Subscriptions) => subscriptions.end()],
  ])('does not reopen the connection when %s', async (_, end) => {
    const { subscriptions, seen } = subscribed();
    subscriptions.watch('a:1');
    end(subscriptions);
    subscriptions.closed();
    await jest.advanceTimersByTimeAsync(5_000);
    expect([seen.opened, seen.updated]).toEqual([1, []]);
  });
});
