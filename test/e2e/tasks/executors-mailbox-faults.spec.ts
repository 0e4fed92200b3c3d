import { TaskChanges } from '../../../src/tasks/lifecycle/task-changes.js';
import { TaskFeed } from '../../../src/tasks/lifecycle/task-feed.js';
import { MailboxStore } from '../../../src/tasks/storage/mailbox.store.js';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

describe('a mailbox with a database that fails for a moment', () => {
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

  it('R2 gives a task that could not be begun to the next worker, and counts no attempt', async () => {
    const id = await send();
    // The task is in the mailbox already: the next commit is the one that begins it.
    const away = Object.assign(new Error('terminating connection'), { code: '57P01' });
    jest.spyOn(gateway.gateway.get(TaskChanges), 'commitAndNotify').mockRejectedValueOnce(away);
    jest.spyOn(gateway.gateway.get(MailboxStore), 'takenBack').mockRejectedValueOnce(away);
    expect((await lease()).status).toBe(503);
    const { status, body } = await lease(20_000);
    expect([status, body.task.id]).toEqual([200, id]);
    const [row] = await gateway.sql('select crashes from a2a_tasks where id = $1', [id]);
    expect(row.crashes).toBe(0);
  });

  it('closes the inbox of a stream when the answer to a question could not be stored', async () => {
    const id = await send();
    const { leaseEpoch } = (await lease()).body;
    await gateway.call('POST', `/api/executions/${id}/events`, { id: 'a', type: 'ask', text: 'More?', leaseEpoch });
    const away = Object.assign(new Error('terminating connection'), { code: '57P01' });
    jest.spyOn(gateway.gateway.get(TaskChanges), 'commitAndNotify').mockRejectedValueOnce(away);
    const feed = gateway.gateway.get(TaskFeed);
    const opened = jest.spyOn(feed, 'openInbox');
    const open = (): boolean => (feed as unknown as { inboxes: Map<string, unknown> }).inboxes.has(id);
    const message = userMessage('more', { taskId: id });
    await expect(rpc(gateway, 'SendStreamingMessage', { message }, { agent: 'box' })).rejects.toThrow();
    expect([opened.mock.calls, open()]).toEqual([[[id]], false]);
  });
});

describe('a mailbox without a worker process', () => {
  it('stores a task as waiting when it is accepted, and again when its question was answered', async () => {
    const gateway = await startTestGateway({ RIALTO_ROLE: 'api' });
    try {
      await publish(gateway, { name: 'box', executor: { kind: 'mailbox' } });
      const lease = async () => (await gateway.call('POST', '/api/mailbox/box/lease?waitMs=0')).body;
      const send = async (more = {}): Promise<string> => {
        const params = { message: userMessage('x', more), configuration: { returnImmediately: true } };
        return (await rpc(gateway, 'SendMessage', params, { agent: 'box' })).task.id;
      };
      const isWaiting = async (id: string): Promise<boolean> => {
        const found = `lease_owner is null and next_at > now() + interval '1 hour'`;
        return (await gateway.sql(`select ${found} as waits from a2a_tasks where id = $1`, [id]))[0].waits;
      };
      const id = await send();
      expect(await isWaiting(id)).toBe(true);
      const { leaseEpoch } = await lease();
      await gateway.call('POST', `/api/executions/${id}/events`, { id: 'a', type: 'ask', text: 'More?', leaseEpoch });
      await send({ taskId: id });
      expect(await isWaiting(id)).toBe(true);
      expect((await lease()).task.id).toBe(id);
    } finally {
      await gateway.close();
    }
  });
});
