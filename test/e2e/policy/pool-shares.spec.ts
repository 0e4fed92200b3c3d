import { Client } from 'pg';
import { publish, rpcCall } from '../../support/clients/a2a.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

/** More than the number of connections in the pool. */
const flood = 60;

describe('X3.10 reads of one member that all wait in the database', () => {
  let gateway: TestGateway;
  let locker: Client;
  let tokens: Record<'mallory' | 'peer' | 'other', string>;
  beforeAll(async () => {
    gateway = await startTestGateway();
    await publish(gateway);
    tokens = {
      mallory: await gateway.tokenOf('default', 'mallory', 'member'),
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

  it.each<[string, () => Promise<{ status: number }>]>([
    ['over REST', () => gateway.call('GET', '/api/a2a/tasks', undefined, tokens.mallory)],
    ['over A2A', () => rpcCall(gateway, 'ListTasks', {}, { token: tokens.mallory })],
  ])('leave connections to others: %s', async (_, read) => {
    expect((await read()).status).toBe(200);
    await locker.query('begin');
    await locker.query('lock table a2a_tasks in access exclusive mode');
    let answered = 0;
    const reads = Array.from({ length: flood }, () => read().finally(() => answered++));
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
});
