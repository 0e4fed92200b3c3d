import { RialtoError } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import { ServerConnections } from './server-connections.js';
import type { UpstreamConnection } from './upstream-connection.js';
import type { CallOptions } from './upstream-connection.types.js';

describe('ServerConnections: a call on a new connection', () => {
  const sent: string[] = [];
  let connectedAt = 1;
  let reads: Promise<RialtoError | undefined>[] = [];
  const connection = {
    get connectedAt() {
      return connectedAt;
    },
    request: async (method: string, _params: JsonObject, options: CallOptions) => {
      await options.opened?.(connection as unknown as UpstreamConnection, options);
      sent.push(method);
      return {};
    },
  };
  const connections = (): ServerConnections =>
    new ServerConnections({
      make: () => connection as unknown as UpstreamConnection,
      read: () => reads.shift() ?? Promise.reject(new Error('read too often')),
    });
  const call = async (of: ServerConnections, more: Partial<CallOptions> = {}) => {
    const opened: CallOptions['opened'] = (on, limits) => (of.isRead(on) ? undefined : of.readOffer(on, limits));
    const options = { timeoutMs: 60_000, opened, ...more };
    return (await of.chooseConnection(options)).request('call', {}, options);
  };
  beforeEach(() => {
    sent.length = 0;
    connectedAt = 1;
    reads = [Promise.resolve(undefined)];
  });

  it('is sent after the offer of the server was read, once per connection', async () => {
    const one = connections();
    await call(one);
    await call(one);
    expect([sent.length, reads.length]).toEqual([2, 0]);
    connectedAt = 2;
    reads = [Promise.resolve(undefined)];
    await call(one);
    expect([sent.length, reads.length]).toEqual([3, 0]);
  });

  it('is not sent when that read fails, and the next call reads again', async () => {
    const cause = new RialtoError('remote_error', { message: 'busy', data: { server: 'files' } });
    reads.unshift(Promise.resolve(cause));
    const one = connections();
    await expect(call(one)).rejects.toMatchObject({ code: 'unavailable', cause, data: { server: 'files' } });
    expect(sent).toEqual([]);
    await call(one);
    expect(sent).toEqual(['call']);
  });

  it('stops waiting for the read when it is canceled', async () => {
    reads = [new Promise(() => undefined)];
    const leave = new AbortController();
    const left = expect(call(connections(), { signal: leave.signal })).rejects.toMatchObject({ code: 'canceled' });
    leave.abort();
    await left;
    expect(sent).toEqual([]);
  });
});

describe('ServerConnections: connections of single clients', () => {
  const made: { key: string | undefined; isIdle: boolean; isClosed: boolean }[] = [];
  const connections = (): ServerConnections => {
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
    const options = { timeoutMs: 60_000, peer, caller };
    return (await (await of.chooseConnection(options)).request('call', {}, options)).by;
  };
  const callAll = (of: ServerConnections, caller: string, count: number) =>
    Promise.all(Array.from({ length: count }, (_, one) => call(of, caller, `${caller}${one}`)));

  it('serve one passing client at a time: calls in the same turn get different connections', async () => {
    const busy = new Set<string | undefined>();
    const make = (owner?: { key: string }) =>
      ({
        get load() {
          return busy.has(owner?.key) ? 1 : 0;
        },
        request: () => {
          busy.add(owner?.key);
          return Promise.resolve({ by: owner!.key });
        },
      }) as unknown as UpstreamConnection;
    const some = new ServerConnections({ make, read: () => Promise.resolve(undefined) });
    const passing = async (key: string) => {
      const peer = { key, era: 'legacy', wantsAlone: true, isPassing: true, capabilities: {} };
      const options = { timeoutMs: 60_000, peer: peer as unknown as CallOptions['peer'], caller: 'a' };
      const connection = some.chooseConnection(options);
      return (connection instanceof Promise ? await connection : connection).request('call', {}, options);
    };
    expect(await Promise.all([passing('one'), passing('two')])).toEqual([{ by: 'one' }, { by: 'two' }]);
  });

  it('are limited to ten per caller, so that other callers get some too', async () => {
    const some = connections();
    expect(await callAll(some, 'a', 11)).toEqual([...Array.from({ length: 10 }, (_, one) => `a${one}`), 'all']);
    expect(await callAll(some, 'b', 1)).toEqual(['b0']);
  });

  it('are limited to fifteen in total', async () => {
    const some = connections();
    for (const caller of ['a', 'b', 'c']) await callAll(some, caller, 5);
    expect(await callAll(some, 'd', 1)).toEqual(['all']);
  });

  it('make room when idle: only those of the caller that already has ten', async () => {
    const some = connections();
    await callAll(some, 'a', 10);
    await callAll(some, 'b', 1);
    for (const one of made) one.isIdle = one.key === 'a3' || one.key === 'b0';
    expect(await call(some, 'a', 'more')).toBe('more');
    expect(made.filter(({ isClosed }) => isClosed).map(({ key }) => key)).toEqual(['a3']);
  });
});
