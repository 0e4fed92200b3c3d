import { setTimeout as wait } from 'node:timers/promises';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import { systemClock } from '../../kernel/clock.js';
import { UpstreamConnection } from './upstream-connection.js';

/** The other end: a server of the 2025 era, or one that never answers. */
class FakeTransport implements Transport {
  onclose?: () => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly received: string[] = [];
  /** Present when the server forgot the session: calling an entry refuses one call. */
  refusals?: (() => void)[];
  isClosed = false;

  constructor(private readonly isMute = false) {}

  start(): Promise<void> {
    return this.isMute ? new Promise(() => undefined) : Promise.resolve();
  }

  send(message: JSONRPCMessage): Promise<void> {
    const { id, method } = message as { id?: number; method: string };
    this.received.push(method);
    if (this.refusals && method === 'any') {
      const notFound = Object.assign(new Error('no such session'), { status: 404 });
      return new Promise((_, reject) => this.refusals!.push(() => reject(notFound)));
    }
    const result = {
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name: 'x', version: '1' },
    };
    const error = { code: -32601, message: 'no' };
    if (id !== undefined && method !== 'never')
      queueMicrotask(() => this.emit(method === 'server/discover' ? { id, error } : { id, result }));
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.isClosed = true;
    this.onclose?.();
    return Promise.resolve();
  }

  emit(message: object): void {
    this.onmessage?.({ jsonrpc: '2.0', ...message } as JSONRPCMessage);
  }
}

const times = { pauseMs: () => 150 };

describe('UpstreamConnection', () => {
  const transports: FakeTransport[] = [];
  const open: UpstreamConnection[] = [];
  let changes = 0;
  const connection = ({ mute = 0, autoReconnect = true } = {}): UpstreamConnection => {
    const transport = (): Promise<Transport> => {
      transports.push(new FakeTransport(transports.length < mute));
      return Promise.resolve(transports.at(-1)!);
    };
    const one = new UpstreamConnection({
      server: 'own',
      transport,
      autoReconnect,
      changed: () => changes++,
      times: { ...times, connectMs: mute > 0 ? 500 : 20_000 },
    });
    open.push(one);
    return one;
  };
  const ask = (one: UpstreamConnection, more: { timeoutMs?: number; signal?: AbortSignal } = {}, method = 'any') =>
    one.request(method, {}, { timeoutMs: 5_000, ...more });

  beforeEach(() => {
    transports.length = 0;
    changes = 0;
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((one) => one.close()));
  });

  it('is idle since the last call; reading the offer does not count', async () => {
    const one = connection();
    await ask(one);
    const since = one.idleSince!;
    await one.offer().catch(() => undefined);
    expect(one.idleSince).toBe(since);
    await ask(one);
    expect(one.idleSince).toBeGreaterThan(since);
  });

  it('counts a call at once, so that no other call takes the connection for an idle one', async () => {
    const one = connection();
    const calls = [ask(one), ask(one)];
    expect(one.load).toBe(2);
    await Promise.all(calls);
    expect(one.load).toBe(0);
  });

  it('is opened by the first call, and shared by the others', async () => {
    const one = connection();
    expect([one.status, one.connectedAt]).toEqual(['disconnected', undefined]);
    await Promise.all([ask(one), ask(one), ask(one)]);
    expect([transports.length, one.status, typeof one.connectedAt]).toEqual([1, 'ready', 'number']);
    expect(transports[0]!.received.slice(0, 3)).toEqual(['server/discover', 'initialize', 'notifications/initialized']);
  });

  it('limits the wait for the opening by the timeout and the signal of the call', async () => {
    const one = connection({ mute: 1 });
    await expect(ask(one, { timeoutMs: 30 })).rejects.toMatchObject({ code: 'remote_timeout' });
    const canceled = new AbortController();
    const waiting = ask(one, { signal: canceled.signal });
    canceled.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'canceled' });
    expect(one.status).toBe('connecting');
  });

  it('fails when it cannot be opened in time, and retries after a delay', async () => {
    const one = connection({ mute: 1 });
    await expect(ask(one)).rejects.toMatchObject({ code: 'remote_timeout' });
    expect(one.status).toBe('error');
    const refusal = { code: 'unavailable', data: { retryAfterSeconds: 1 } };
    await expect(ask(one)).rejects.toMatchObject(refusal);
    expect(transports).toHaveLength(1);
    await wait(times.pauseMs() + 10);
    await ask(one);
    expect([transports.length, one.status]).toEqual([2, 'ready']);
  });

  it.each([true, false])('reconnects after a failure only with autoReconnect: %s', async (autoReconnect) => {
    const one = connection({ autoReconnect });
    await ask(one);
    const running = expect(ask(one, {}, 'never')).rejects.toMatchObject({ code: 'remote_transport' });
    await wait(5);
    void transports[0]!.close();
    await running;
    expect(one.status).toBe('error');
    await wait(times.pauseMs() + 100);
    expect([transports.length, one.status]).toEqual(autoReconnect ? [2, 'ready'] : [1, 'error']);
    if (!autoReconnect) await expect(ask(one)).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('reconnects even when its timer fires slightly ahead of the clock', async () => {
    const one = connection();
    await ask(one);
    const now = systemClock.elapsed();
    const elapsed = jest.spyOn(systemClock, 'elapsed').mockImplementation(() => now);
    await transports[0]!.close();
    await wait(times.pauseMs() + 100);
    elapsed.mockRestore();
    expect([transports.length, one.status]).toEqual([2, 'ready']);
  });

  it('resends each call that was refused because the server forgot the session, and loses no other call', async () => {
    const one = connection();
    await ask(one);
    const [first] = transports;
    const refusals = (first!.refusals = []) as (() => void)[];
    const calls = [ask(one), ask(one), ask(one)];
    while (refusals.length < calls.length) await wait(1);
    refusals[0]!();
    await calls[0];
    expect([transports.length, first!.isClosed]).toEqual([2, false]);
    refusals[1]!();
    await calls[1];
    const last = calls[2]!.finally(() => expect(first!.isClosed).toBe(true));
    refusals[2]!();
    await last;
    expect(transports.map(({ received }) => received.filter((method) => method === 'any').length)).toEqual([4, 3]);
  });

  it('reads the offer once for many change notifications', async () => {
    const one = connection();
    await ask(one);
    for (let count = 0; count < 50; count++) {
      transports[0]!.emit({ method: 'notifications/tools/list_changed' });
      await wait(5);
    }
    await wait(900);
    expect(changes).toBe(1);
  });

  it('refuses calls after it was closed', async () => {
    const one = connection();
    await ask(one);
    const running = expect(ask(one, {}, 'never')).rejects.toMatchObject({ code: 'unavailable' });
    await wait(5);
    await one.close();
    await running;
    await expect(ask(one)).rejects.toMatchObject({ code: 'unavailable' });
    expect(transports).toHaveLength(1);
  });
});
