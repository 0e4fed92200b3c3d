import { Client } from 'pg';
import { publish, rpcCall } from '../../support/clients/a2a.js';
import { ReadShares } from '../../../src/platform/http/shares/read-shares.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

/** More than the number of connections in the pool. */
const flood = 60;

describe('X3.10 reads of two members that all wait in the database', () => {
  let gateway: TestGateway;
  let locker: Client;
  let tokens: Record<'mallory' | 'trudy' | 'peer' | 'other', string>;
  beforeAll(async () => {
    // Without a worker: its sweeps would also wait for the locked table, and take the connections that are left.
    gateway = await startTestGateway({ RIALTO_ROLE: 'api' });
    await publish(gateway);
    tokens = {
      mallory: await gateway.tokenOf('default', 'mallory', 'member'),
      trudy: await gateway.tokenOf('default', 'trudy', 'member'),
      peer: await gateway.tokenOf('default', 'peer', 'admin'),
      other: await gateway.tokenOf('elsewhere', 'olga', 'admin'),
    };
    locker = new Client({ connectionString: gateway.database.url });
    await locker.connect();
  });
  afterAll(async () => {
    await locker.end();
    await gateway.close();
  });

  it.each<[string, (token: string) => Promise<{ status: number }>]>([
    ['over REST', (token) => gateway.call('GET', '/api/a2a/tasks', undefined, token)],
    ['over A2A', (token) => rpcCall(gateway, 'ListTasks', {}, { token })],
  ])('leave connections to others: %s', async (_, read) => {
    expect((await read(tokens.mallory)).status).toBe(200);
    await locker.query('begin');
    await locker.query('lock table a2a_tasks in access exclusive mode');
    let answered = 0;
    const reads = [tokens.mallory, tokens.trudy].flatMap((token) =>
      Array.from({ length: flood }, () => read(token).finally(() => answered++)),
    );
    try {
      for (const token of [tokens.peer, tokens.other])
        expect((await gateway.call('GET', '/api/keys', undefined, token)).status).toBe(200);
      expect(answered).toBe(0);
    } finally {
      await locker.query('rollback');
    }
    const statuses = (await Promise.all(reads)).map(({ status }) => status);
    expect(statuses).toContain(200);
    expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
  });

  it('leave connections to others when their callers are gone', async () => {
    const waits = jest.spyOn(gateway.gateway.get(ReadShares), 'intercept');
    const isGone = ([context]: (typeof waits.mock.calls)[number]): boolean =>
      context.switchToHttp().getResponse<{ destroyed: boolean }>().destroyed;
    const leaving = new AbortController();
    await locker.query('begin');
    await locker.query('lock table push_configs in access exclusive mode');
    const reads = Array.from({ length: flood }, () =>
      fetch(`${gateway.url}/api/webhooks/configs`, {
        headers: { authorization: `Bearer ${tokens.mallory}` },
        signal: leaving.signal,
      }).catch(() => undefined),
    );
    try {
      await eventually(
        () => waits.mock.calls.length,
        (count) => count === flood,
      );
      leaving.abort();
      await Promise.all(reads);
      await eventually(
        () => waits.mock.calls.filter(isGone).length,
        (count) => count === flood,
      );
      for (const token of [tokens.peer, tokens.other])
        expect((await gateway.call('GET', '/api/keys', undefined, token)).status).toBe(200);
      const [{ locked }] = await gateway.sql(
        `select count(*)::int as locked from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'`,
      );
      expect(locked).toBe(6);
    } finally {
      await locker.query('rollback');
      waits.mockRestore();
    }
  });
});
