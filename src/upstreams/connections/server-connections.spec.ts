import { RialtoError } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import { ServerConnections } from './server-connections.js';
import type { UpstreamConnection } from './upstream-connection.js';
import type { CallOptions } from './upstream-connection.types.js';

describe('a call on a line that is new', () => {
  const said: string[] = [];
  let connectedAt = 1;
  let reads: Promise<RialtoError | undefined>[] = [];
  const line = {
    get connectedAt() {
      return connectedAt;
    },
    request: async (method: string, _params: JsonObject, { opened }: CallOptions) => {
      await opened?.();
      said.push(method);
      return {};
    },
  };
  const asks: string[] = [];
  const lines = (): ServerConnections =>
    new ServerConnections({
      make: () => line as unknown as UpstreamConnection,
      read: () => reads.shift() ?? Promise.reject(new Error('read too often')),
    });
  const stillMay = () => Promise.resolve(void asks.push('asked again'));
  const call = (of: ServerConnections, more: Partial<CallOptions> = {}) =>
    of.request('call', {}, { timeoutMs: 60_000, stillMay, ...more });
  beforeEach(() => {
    said.length = asks.length = 0;
    connectedAt = 1;
    reads = [Promise.resolve(undefined)];
  });

  it('is made once it was read what the server has, which is read once for each connection', async () => {
    const one = lines();
    await call(one);
    await call(one);
    expect([said.length, asks.length, reads.length]).toEqual([2, 1, 0]);
    connectedAt = 2;
    reads = [Promise.resolve(undefined)];
    await call(one);
    expect([said.length, asks.length, reads.length]).toEqual([3, 2, 0]);
  });

  it('is not made while that fails, and the next reads again', async () => {
    const cause = new RialtoError('remote_error', { message: 'busy', data: { server: 'files' } });
    reads.unshift(Promise.resolve(cause));
    const one = lines();
    await expect(call(one)).rejects.toMatchObject({ code: 'unavailable', cause, data: { server: 'files' } });
    expect(said).toEqual([]);
    await call(one);
    expect(said).toEqual(['call']);
  });

  it('is waited for by nobody who cancels it', async () => {
    reads = [new Promise(() => undefined)];
    const leave = new AbortController();
    const left = expect(call(lines(), { signal: leave.signal })).rejects.toMatchObject({ code: 'canceled' });
    leave.abort();
    await left;
    expect(said).toEqual([]);
  });

  it('of something else than a tool reads nothing', async () => {
    reads = [];
    await call(lines(), { stillMay: undefined });
    expect(said).toEqual(['call']);
  });
});

describe('lines of single clients', () => {
  const made: { key: string | undefined; isIdle: boolean; isClosed: boolean }[] = [];
  const lines = (): ServerConnections => {
    made.length = 0;
    const make = (peer?: { key: string }) => {
      const one = { key: peer?.key, isIdle: false, isClosed: false };
      made.push(one);
      return {
        get idleSince() {
          return one.isIdle ? 0 : undefined;
        },
        ready: () => Promise.resolve(),
        request: () => Promise.resolve({ by: one.key ?? 'all' }),
        close: () => Promise.resolve(void (one.isClosed = true)),
      } as unknown as UpstreamConnection;
    };
    return new ServerConnections({ make, read: () => Promise.resolve(undefined) });
  };
  const call = async (of: ServerConnections, caller: string, key: string) => {
    const peer = { key, era: 'legacy', wantsAlone: true, capabilities: {} } as unknown as CallOptions['peer'];
    return (await of.request('call', {}, { timeoutMs: 60_000, peer, caller })).by;
  };
  const callAll = (of: ServerConnections, caller: string, count: number) =>
    Promise.all(Array.from({ length: count }, (_, one) => call(of, caller, `${caller}${one}`)));

  it('are at most ten of one caller, so that others are asked too', async () => {
    const some = lines();
    expect(await callAll(some, 'a', 11)).toEqual([...Array.from({ length: 10 }, (_, one) => `a${one}`), 'all']);
    expect(await callAll(some, 'b', 1)).toEqual(['b0']);
  });

  it('are at most fifteen in all', async () => {
    const some = lines();
    for (const caller of ['a', 'b', 'c']) await callAll(some, caller, 5);
    expect(await callAll(some, 'd', 1)).toEqual(['all']);
  });

  it('make room when they are idle, of the caller who has ten those alone', async () => {
    const some = lines();
    await callAll(some, 'a', 10);
    await callAll(some, 'b', 1);
    for (const one of made) one.isIdle = one.key === 'a3' || one.key === 'b0';
    expect(await call(some, 'a', 'more')).toBe('more');
    expect(made.filter(({ isClosed }) => isClosed).map(({ key }) => key)).toEqual(['a3']);
  });
});
