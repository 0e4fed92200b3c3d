import pg from 'pg';
import { Notices } from '../../src/platform/bus/notices.js';
import { Presence } from '../../src/platform/database/presence.js';
import { createLogger } from '../../src/platform/telemetry/logger.js';
import { asAdmin } from '../support/gateway/admin.js';
import { eventually } from '../support/gateway/eventually.js';
import { createTestDatabase, type TestDatabase } from '../support/gateway/database.js';

const channel = 'rialto_notices';

describe('Notices of two processes on one database', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let one: Notices;
  let two: Notices;
  let wire: pg.Client;
  let alive: Presence[];
  let payloads: string[];
  const log: string[] = [];

  beforeAll(async () => {
    database = await createTestDatabase('notices');
    pool = new pg.Pool({ connectionString: database.url, max: 2 });
    pool.on('error', () => undefined);
    const logger = createLogger('debug', { write: (line) => void log.push(line) });
    alive = [1, 2, 3].map(() => new Presence(database.url, logger));
    const noticesOf = ({ id }: Presence) => new Notices(pool, database.url, logger, id);
    [one, two] = [noticesOf(alive[0]!), noticesOf(alive[1]!)];
    await Promise.all(alive.slice(0, 2).map((presence) => presence.open()));
    await Promise.all([one.listen(), two.listen()]);
    wire = new pg.Client({ connectionString: database.url });
    await wire.connect();
    await wire.query(`listen ${channel}`);
    wire.on('notification', ({ payload }) => void payloads.push(payload!));
  });

  beforeEach(() => {
    payloads = [];
  });

  afterAll(async () => {
    await Promise.all([one.close(), two.close(), ...alive.map((presence) => presence.close())]);
    await wire.end();
    await pool.end();
    await database.drop();
  });

  /** Resolves with the org ids that a process receives, when it has received the last one. */
  function heardUntil(notices: Notices, last: string): Promise<string[]> {
    const received: string[] = [];
    return new Promise((resolve) => {
      const unsubscribe = notices.on('policy.changed', ({ orgId }) => {
        received.push(orgId);
        if (orgId !== last) return;
        unsubscribe();
        resolve(received);
      });
    });
  }

  /** Waits until the connection of the test has received the org too, which may be before or after the processes. */
  function overTheWire(last: string): Promise<unknown> {
    return eventually(
      () => payloads.some((payload) => payload.includes(`"${last}"`)),
      (heard) => heard,
    );
  }

  it('delivers to its own process at once and to the other one by notify, once each', async () => {
    const own: string[] = [];
    const unsubscribe = one.on('policy.changed', ({ orgId }) => void own.push(orgId));
    const other = heardUntil(two, 'first-end');
    one.tell(undefined, 'policy.changed', { orgId: 'a' });
    expect(own).toEqual(['a']);
    one.tell(undefined, 'policy.changed', { orgId: 'first-end' });
    expect(await other).toEqual(['a', 'first-end']);
    const back = heardUntil(one, 'back');
    two.tell(undefined, 'policy.changed', { orgId: 'back' });
    await back;
    expect(own).toEqual(['a', 'first-end', 'back']);
    unsubscribe();
  });

  it('combines a burst into one payload without repeats', async () => {
    const other = heardUntil(two, 'burst-end');
    for (let index = 0; index < 100; index++) one.tell(undefined, 'policy.changed', { orgId: `o${index % 5}` });
    one.tell(undefined, 'policy.changed', { orgId: 'burst-end' });
    expect(await other).toEqual(['o0', 'o1', 'o2', 'o3', 'o4', 'burst-end']);
    await overTheWire('burst-end');
    expect(payloads.filter((payload) => /"(o\d|burst-end)"/.test(payload))).toHaveLength(1);
  });

  it('splits payloads below 8,000 bytes and loses no notice', async () => {
    const ids = Array.from({ length: 400 }, (_, index) => `${'ü'.repeat(60)}${index}`);
    const other = heardUntil(two, 'split-end');
    for (const orgId of [...ids, 'split-end']) one.tell(undefined, 'policy.changed', { orgId });
    expect(await other).toEqual([...ids, 'split-end']);
    await overTheWire('split-end');
    expect(payloads.length).toBeGreaterThan(5);
    for (const payload of payloads) expect(Buffer.byteLength(payload)).toBeLessThan(8_000);
  });

  it('loses only the notice that is too long for any payload', async () => {
    const other = heardUntil(two, 'long-end');
    one.tell(undefined, 'mcp.call-cancelled', { orgId: 'o', sessionId: 's', requestId: 'r'.repeat(9_000) });
    one.tell(undefined, 'policy.changed', { orgId: 'long-end' });
    expect(await other).toEqual(['long-end']);
  });

  it('sends after the commit, and nothing after a rollback', async () => {
    const effects: (() => void)[] = [];
    const tx = { manager: undefined as never, afterCommit: (effect: () => void) => void effects.push(effect) };
    const own: string[] = [];
    const other = heardUntil(two, 'later');
    const unsubscribe = one.on('policy.changed', ({ orgId }) => void own.push(orgId));
    one.tell(tx, 'policy.changed', { orgId: 'later' });
    expect(own).toEqual([]);
    effects.forEach((effect) => effect());
    expect(own).toEqual(['later']);
    expect(await other).toEqual(['later']);
    unsubscribe();
  });

  it('ignores foreign payloads on the channel', async () => {
    const other = heardUntil(two, 'end');
    const junk = [
      '',
      '{',
      '[]',
      '{"from":"x"}',
      '{"from":"x","told":[["constructor",{}],["policy.changed",{}],["no.such",1]]}',
    ];
    for (const payload of junk) await wire.query('select pg_notify($1, $2)', [channel, payload]);
    one.tell(undefined, 'policy.changed', { orgId: 'end' });
    expect(await other).toEqual(['end']);
  });

  it('continues after a listener threw', async () => {
    const unsubscribe = two.on('policy.changed', () => {
      throw new Error('a listener of the test');
    });
    const other = heardUntil(two, 'end');
    one.tell(undefined, 'policy.changed', { orgId: 'end' });
    await other;
    unsubscribe();
    expect(log.join('')).toContain('a notice listener threw');
  });

  it('reconnects after a loss, reports that notices were missed, and keeps one connection per process', async () => {
    const missed = [one, two].map((notices) => new Promise<void>((resolve) => notices.onMissed(resolve)));
    const name = new URL(database.url).pathname.slice(1);
    const listeners = `
      select pid from pg_stat_activity where application_name = 'rialto:notices' and datname = '${name}'`;
    await asAdmin(async (client) => {
      // While connections are refused, several attempts fail. Exactly one new attempt must follow each.
      await client.query(`alter database "${name}" allow_connections false`);
      await client.query(`select pg_terminate_backend(pid) from (${listeners}) as all_of_them`);
      await new Promise((resolve) => setTimeout(resolve, 2_500));
      await client.query(`alter database "${name}" allow_connections true`);
    });
    await Promise.all(missed);
    await asAdmin(async (client) => expect((await client.query(listeners)).rowCount).toBe(2));
    const other = heardUntil(two, 'end');
    one.tell(undefined, 'policy.changed', { orgId: 'end' });
    expect(await other).toEqual(['end']);
  });

  it('sends nothing while no other process is alive, and again when one begins to listen', async () => {
    await Promise.all([two.close(), alive[1]!.close()]);
    const locks = `
      select count(distinct objid)::int as n
      from pg_locks
      where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`;
    await eventually(
      () => pool.query<{ n: number }>(locks),
      ({ rows }) => rows[0]!.n === 1,
    );
    const silent = createLogger('silent');
    const solo = new Notices(pool, database.url, silent, alive[0]!.id);
    await solo.listen();
    const own: string[] = [];
    solo.on('policy.changed', ({ orgId }) => void own.push(orgId));
    const queries = jest.spyOn(pool, 'query');
    solo.tell(undefined, 'policy.changed', { orgId: 'alone' });
    expect(own).toEqual(['alone']);
    const [answer] = await eventually(
      () => queries.mock.results.map(({ value }) => value as unknown as Promise<pg.QueryResult>),
      ({ length }) => length === 1,
    );
    expect((await answer!).rows).toEqual([{ others: false }]);
    queries.mockRestore();
    await alive[2]!.open();
    const third = new Notices(pool, database.url, silent, alive[2]!.id);
    const received: string[] = [];
    third.on('policy.changed', ({ orgId }) => void received.push(orgId));
    await third.listen();
    await eventually(
      () => {
        solo.tell(undefined, 'policy.changed', { orgId: 'both' });
        return received;
      },
      ({ length }) => length > 0,
    );
    await overTheWire('both');
    expect(payloads.join()).not.toContain('alone');
    await Promise.all([solo.close(), third.close()]);
  });
});
