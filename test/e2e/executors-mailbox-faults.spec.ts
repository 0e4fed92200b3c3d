import { LiveTasks } from '../../src/tasks/live-tasks.js';
import { MailboxStore } from '../../src/tasks/mailbox.store.js';
import { publish, rpc, userMessage } from '../support/a2a.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

describe('a mailbox whose database fails for a moment', () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startTestGateway();
    await publish(gateway, { name: 'box', executor: { kind: 'mailbox' } });
  });
  afterAll(() => gateway.close());
  afterEach(() => jest.restoreAllMocks());

  const lease = (waitMs = 0) => gateway.call('POST', `/api/mailbox/box/lease?waitMs=${waitMs}`);
  const send = async (): Promise<string> => {
    const configuration = { returnImmediately: true };
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x'), configuration }, { agent: 'box' });
    return task.id;
  };

  it('R2 gives a task that could not be begun to the next who asks, and counts no attempt', async () => {
    const id = await send();
    // It waits in the box, and the next commit is that of its beginning.
    await eventually(
      () => gateway.sql(`select from a2a_tasks where id = $1 and lease_owner is null and next_at > now()`, [id]),
      ({ length }) => length === 1,
    );
    const away = Object.assign(new Error('terminating connection'), { code: '57P01' });
    jest.spyOn(gateway.gateway.get(LiveTasks), 'commit').mockRejectedValueOnce(away);
    jest.spyOn(gateway.gateway.get(MailboxStore), 'takenBack').mockRejectedValueOnce(away);
    expect((await lease()).status).toBe(503);
    const { status, body } = await lease(20_000);
    expect([status, body.task.id]).toEqual([200, id]);
    const [row] = await gateway.sql('select crashes from a2a_tasks where id = $1', [id]);
    expect(row.crashes).toBe(0);
  });
});
