import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { publish, rpc, userMessage } from '../support/a2a.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

describe('an org whose services never answer', () => {
  let gateway: TestGateway;
  const silent = createServer(() => undefined);
  let others: string;

  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_RATE_LIMIT_PRINCIPAL: '100000', RIALTO_RATE_LIMIT_ORG: '100000' });
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    others = await gateway.tokenOf('acme', 'eve', 'admin');
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`;
    await publish(gateway, { name: 'tarpit', executor: { kind: 'http', url } }, others);
    await publish(gateway);
  });
  afterAll(async () => {
    silent.closeAllConnections();
    silent.close();
    await gateway.close();
  });

  it('abuse 36 waits for them alone: the tasks of others are done meanwhile', async () => {
    const configuration = { returnImmediately: true };
    const send = (agent: string, token?: string) =>
      rpc(gateway, 'SendMessage', { message: userMessage('x'), configuration }, { agent, token });
    await Promise.all(Array.from({ length: 150 }, () => send('tarpit', others)));
    const { task } = await send('echo');
    const done = await eventually(
      () => rpc(gateway, 'GetTask', { id: task.id }),
      ({ status }) => status.state === 'TASK_STATE_COMPLETED',
      8_000,
    );
    expect(done.status.state).toBe('TASK_STATE_COMPLETED');
    const [{ working }] = (await gateway.sql(
      `select count(*)::int as working from a2a_tasks where agent_name = 'tarpit' and lease_owner is not null`,
    )) as [{ working: number }];
    expect(working).toBeGreaterThanOrEqual(100);
    expect(working).toBeLessThan(120); // several are claimed at once
    await gateway.sql(
      `update a2a_tasks set status_state = 'failed', next_at = null, lease_owner = null, lease_until = null where agent_name = 'tarpit'`,
    );
  });
});
