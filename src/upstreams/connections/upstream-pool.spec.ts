import { systemClock } from '../../kernel/clock.js';
import type { OrgId } from '../../kernel/ids.js';
import type { Logger } from '../../platform/telemetry/logger.js';
import { ProgramSlots } from '../programs/program-slots.js';
import { UpstreamPool, type Addressed } from './upstream-pool.js';
import type { SealedEndpoints } from '../storage/sealed-endpoints.js';
import type { UpstreamTransports } from '../transports/upstream-transports.js';

const places = { endpointOf: () => ({ transport: 'streamable-http', url: 'http://x', headers: {} }) };
/** Connections that stay in the opening state until their pool is closed. */
const opening: (() => void)[] = [];
const forgotten: string[] = [];
const transports = {
  checkEndpoint: () => undefined,
  removeDownloads: ({ serverId }: Addressed) => Promise.resolve(void forgotten.push(serverId)),
  openTransport: () => new Promise((_resolve, reject) => opening.push(() => reject(new Error('over')))),
};

const server = (id: string, more: Partial<Addressed> = {}) =>
  ({ id, orgId: 'o', serverId: id, transport: 'streamable-http', url: 'http://x', roots: [], ...more }) as Addressed;
const user = (name: string | number, id = `credential of ${name}`) => ({
  id,
  caller: `user:${name}`,
  origin: 'http://x',
  sealed: '',
});

describe('UpstreamPool', () => {
  const open: UpstreamPool[] = [];
  const pool = (): UpstreamPool => {
    const one = new UpstreamPool(
      transports as unknown as UpstreamTransports,
      places as unknown as SealedEndpoints,
      new ProgramSlots({ RIALTO_STDIO_PROGRAMS: 5 }),
      { debug: () => undefined } as unknown as Logger,
    );
    open.push(one);
    return one;
  };
  const callers = (one: UpstreamPool): string[] => one.users().map((each) => each.user.caller);
  afterEach(async () => {
    await Promise.all(open.splice(0).map((one) => one.onApplicationShutdown()));
    for (const end of opening.splice(0)) end();
  });

  it('keeps separate connections for each user and server, and for the shared use', () => {
    const one = pool();
    const of = [
      one.to(server('a')),
      one.to(server('a'), user('ann')),
      one.to(server('a'), user('bob')),
      one.to(server('b'), user('ann')),
    ];
    expect(new Set(of).size).toBe(4);
    expect(one.to(server('a'), user('ann'))).toBe(of[1]);
    expect(one.to(server('a'))).toBe(of[0]);
  });

  it('replaces connections when the credential, the address or the required headers changed', async () => {
    const one = pool();
    const before = one.to(server('a'), user('ann'));
    const after = one.to(server('a'), user('ann', 'another'));
    expect(after).not.toBe(before);
    await expect(before.shared.ready({ timeoutMs: 1_000 })).rejects.toThrow('the gateway closed the connection');
    expect(one.to(server('a', { userHeaders: ['X-Key'] }), user('ann', 'another'))).not.toBe(after);
    one.keepOnly('o', new Map([['a', server('a', { url: 'http://y' })]]));
    expect(callers(one)).toEqual([]);
  });

  it('closes the connections of one user with its credential, and keeps all others', () => {
    const one = pool();
    const [all, bobs] = [one.to(server('a')), one.to(server('a'), user('bob'))];
    for (const id of ['a', 'b']) one.to(server(id), user('ann'));
    one.dropUser('a', 'user:ann');
    expect(one.users().map((each) => [each.server.id, each.user.caller])).toEqual([
      ['a', 'user:bob'],
      ['b', 'user:ann'],
    ]);
    expect([one.to(server('a')), one.to(server('a'), user('bob'))]).toEqual([all, bobs]);
    one.closeServer('a');
    expect(callers(one)).toEqual(['user:ann']);
  });

  it('removes the downloads of a deleted server, unless another server or a probe uses its name', async () => {
    const one = pool();
    const old = (row: string) => server(row, { serverId: 'named' });
    const removed = async (row: string): Promise<string[]> => {
      one.to(old(row));
      one.keepOnly('o', new Map([['next', old('next')]]));
      for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setImmediate(resolve));
      return forgotten.splice(0);
    };
    expect(await removed('first')).toEqual(['named']);
    const probe = one.probe(old('x'), places.endpointOf() as never, old('x')).catch(() => undefined);
    expect(await removed('second')).toEqual([]);
    for (const end of opening.splice(0)) end();
    await probe;
    expect(await removed('third')).toEqual(['named']);
    one.to(old('next'));
    expect(await removed('fourth')).toEqual([]);
  });

  it('limits an org to 200 users: closes the longest idle connection without listeners, or refuses', () => {
    const one = pool();
    const listening = one.attend(server('a'), user(0));
    for (let count = 0; count < 201; count++) one.to(server('a'), user(count));
    expect(callers(one)).toHaveLength(200);
    expect(callers(one)).toEqual(expect.arrayContaining(['user:0', 'user:2', 'user:200']));
    expect(callers(one)).not.toContain('user:1');
    one.to(server('of another org', { orgId: 'p' as OrgId }), user('ann'));
    expect(callers(one)).toHaveLength(201);
    listening();
    for (const { server: at, user: owner } of one.users())
      void one
        .to(at, owner)
        .shared.ready({ timeoutMs: 60_000 })
        .catch(() => undefined);
    expect(() => one.to(server('a'), user('late'))).toThrow('200 users of this org');
    expect(() => one.to(server('a'))).not.toThrow();
  });

  it('closes connections that were opened at the same instant in the order of opening', () => {
    const elapsed = jest.spyOn(systemClock, 'elapsed').mockReturnValue(1);
    try {
      const one = pool();
      for (let count = 0; count < 203; count++) one.to(server('a'), user(count));
      expect(callers(one)).toEqual(Array.from({ length: 200 }, (_, index) => `user:${index + 3}`));
    } finally {
      elapsed.mockRestore();
    }
  });
});
