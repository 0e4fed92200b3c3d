import { publish, rpc, rpcStream, userMessage } from '../../support/clients/a2a.js';
import { readEvents } from '../../support/gateway/event-rows.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

const newer = /^TASK_STATE_(SUBMITTED|WORKING|COMPLETED|FAILED|CANCELED|INPUT_REQUIRED|REJECTED|AUTH_REQUIRED)$/;
const older = /^(submitted|working|completed|failed|canceled|input-required|rejected|auth-required|unknown)$/;
const inner = /processing|lease|epoch|crashes|folded|next_?at|queued|memo/i;

describe('what a task is inside', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startTestGateway();
    await publish(gateway);
    await publish(gateway, { name: 'box', executor: { kind: 'mailbox' } });
  });
  afterAll(() => gateway.close());

  const states = (value: unknown): string[] =>
    [...JSON.stringify(value).matchAll(/"state":"([^"]*)"/g)].map(([, state]) => state!);

  it('AN-21 is never on the wire: while it waits, is leased, is worked on, and after it', async () => {
    const params = { message: userMessage('x'), configuration: { returnImmediately: true } };
    const sent = await rpc(gateway, 'SendMessage', params, { agent: 'box' });
    const { id } = sent.task;
    const stream = await rpcStream(
      gateway,
      'SubscribeToTask',
      { id },
      { agent: 'box', headers: { 'a2a-version': '1.0' } },
    );
    const look = async () => ({
      newer: await rpc(gateway, 'GetTask', { id }, { agent: 'box', headers: { 'a2a-version': '1.0' } }),
      list: await rpc(gateway, 'ListTasks', {}, { agent: 'box', headers: { 'a2a-version': '1.0' } }),
      older: await rpc(gateway, 'tasks/get', { id }, { agent: 'box' }),
      rest: (await gateway.call('GET', `/a2a/agents/box/tasks/${id}`)).body,
      run: (await gateway.call('GET', `/a2a/tasks/${id}`)).body,
      tool: (await gateway.rpc('tools/call', { name: 'task_status', arguments: { taskId: id, waitMs: 0 } })).result,
    });
    const seen: unknown[] = [sent, await look()];
    const { body: lease } = await gateway.call('POST', '/api/mailbox/box/lease');
    expect([lease.task.id, lease.leaseEpoch]).toEqual([id, expect.any(Number)]);
    const [row] = await gateway.sql('select lease_epoch, lease_until from a2a_tasks where id = $1', [id]);
    expect(row).toMatchObject({ lease_epoch: lease.leaseEpoch, lease_until: expect.any(Date) });
    seen.push(await look());
    const report = (event: object) =>
      gateway.call('POST', `/api/executions/${id}/events`, { leaseEpoch: lease.leaseEpoch, ...event });
    expect((await report({ id: '1', type: 'progress', text: 'half' })).status).toBe(200);
    seen.push(await look());
    expect((await report({ id: '2', type: 'complete', text: 'done' })).status).toBe(200);
    seen.push(await look(), await stream.rest());
    const text = JSON.stringify(seen);
    expect(text).not.toMatch(inner);
    const found = states(seen);
    expect(found.filter((state) => !newer.test(state) && !older.test(state))).toEqual([]);
    for (const state of ['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED', 'working', 'completed'])
      expect(found).toContain(state);
  });

  it('AN-24 is a row with an equal of every column of the reference', async () => {
    const token = await gateway.tokenOf('acme', 'ann', 'admin');
    await publish(gateway, {}, token);
    const metadata = { ticket: 7 };
    const { task } = await rpc(
      gateway,
      'SendMessage',
      { message: userMessage('kept', { contextId: 'c-1' }), metadata },
      { token, headers: { 'idempotency-key': 'key-1' }, agent: 'echo@acme' },
    );
    const read = () =>
      gateway.sql(
        `select t.id, t.context_id, t.status_state, t.status_message, t.status_timestamp, t.history, t.artifacts,
           t.metadata, t.owner, t.created_at, t.updated_at, o.slug as org, k.key
         from a2a_tasks t join orgs o on o.id = t.org_id join a2a_idempotency_keys k on k.task_id = t.id
         where t.id = $1`,
        [task.id],
      );
    const [inTable] = await eventually(read, (rows) => rows.length === 1);
    // The content is in the log of the task.
    const [opened, , { artifactUpdate }, { statusUpdate }] = await readEvents(gateway.sql, task.id);
    expect(inTable).toMatchObject({ status_message: null, history: [], artifacts: [] });
    const { history } = opened.task;
    const row = {
      ...inTable,
      status_message: statusUpdate.status.message,
      history,
      artifacts: [artifactUpdate.artifact],
    };
    expect(row).toMatchObject({
      id: task.id,
      context_id: 'c-1',
      status_state: 'completed',
      status_message: { parts: [{ text: 'kept' }] },
      status_timestamp: new Date(task.status.timestamp),
      history: [{ role: 'ROLE_USER', parts: [{ text: 'kept' }] }],
      artifacts: [{ parts: [{ text: 'kept' }] }],
      metadata,
      // owner_email, owner_scope and idempotency_key
      owner: 'user:ann',
      org: 'acme',
      key: 'key-1',
      created_at: expect.any(Date),
      updated_at: expect.any(Date),
    });
    const shown = await rpc(
      gateway,
      'GetTask',
      { id: task.id },
      {
        token,
        agent: 'echo@acme',
        headers: { 'a2a-version': '1.0' },
      },
    );
    expect(shown).toMatchObject({ id: row.id, contextId: row.context_id, metadata });
  });
});
