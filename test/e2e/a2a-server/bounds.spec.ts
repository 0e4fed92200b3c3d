import { TaskFeed } from '../../../src/tasks/lifecycle/task-feed.js';
import type { StoredTask } from '../../../src/tasks/task.types.js';
import { openStream, publish, rpc, rpcCall, rpcStream, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

const megabyte = 'x'.repeat(1_000_000);

describe('the limits of tasks and answers', () => {
  let gateway: TestGateway;
  let mailbox: { secret: string };

  beforeAll(async () => {
    gateway = await startTestGateway();
    await publish(gateway);
    await publish(gateway, { name: 'asks', executor: { kind: 'echo', ask: 'Which?' } });
    mailbox = await publish(gateway, { name: 'box', executor: { kind: 'mailbox' } });
  });
  afterAll(() => gateway.close());

  const sendAndRead = async (agent: string, text: string, more: Record<string, unknown> = {}): Promise<any> =>
    (
      await rpc(
        gateway,
        'SendMessage',
        { message: userMessage(text, more), configuration: { returnImmediately: true } },
        { agent },
      )
    ).task;
  async function held(text = 'x', more: Record<string, unknown> = {}) {
    const { id } = await sendAndRead('box', text, more);
    const { body } = await eventually(
      () => gateway.call('POST', '/api/mailbox/box/lease?waitMs=1000', undefined, mailbox.secret),
      (answer) => answer.status === 200 && answer.body.task.id === id,
    );
    const report = (event: Record<string, unknown>) =>
      gateway.call('POST', `/api/executions/${id}/events`, { leaseEpoch: body.leaseEpoch, ...event }, body.token);
    return { id: id as string, lease: body, report };
  }
  const artifact = (id: string, text: string, more = {}) => ({
    id,
    type: 'artifact',
    artifact: { artifactId: 'a', parts: [{ text }] },
    ...more,
  });

  it('a page of a list ends when it is too large, and the next one continues', async () => {
    const contextId = 'heavy';
    const ids = [];
    for (let n = 0; n < 7; n++) {
      const { task } = await rpc(gateway, 'SendMessage', { message: userMessage(megabyte, { contextId }) });
      ids.unshift(task.id);
    }
    const pages: string[][] = [];
    for (let pageToken: string | undefined = ''; pageToken !== undefined;) {
      const params: any = { contextId, pageSize: 100, ...(pageToken && { pageToken }) };
      const { tasks, nextPageToken, totalSize } = await rpc(gateway, 'ListTasks', params);
      expect(totalSize).toBe(7);
      pages.push(tasks.map(({ id }: any) => id));
      pageToken = nextPageToken === '' ? undefined : nextPageToken;
    }
    expect(pages.length).toBeGreaterThan(1);
    expect(pages.flat()).toEqual(ids);
    // Without messages and artifacts, all tasks fit into one page.
    const { body } = await gateway.call('GET', `/api/a2a/tasks?contextId=${contextId}&limit=100`);
    expect(body.items.map(({ id }: any) => id)).toEqual(ids);
  });

  it('a caller that asks for the history gets the newest messages, at most a few megabytes', async () => {
    const contextId = 'long talk';
    for (let n = 0; n < 8; n++) {
      const { report } = await held(`${n}${megabyte}`, { contextId });
      await report({ id: 'c', type: 'complete' });
    }
    const { lease } = await held('last', { contextId });
    const first = lease.history.map(({ parts }: any) => parts[0].text[0]);
    expect(first).toEqual(['4', '5', '6', '7']);
  });

  it('an artifact grows up to a limit', async () => {
    const { id, report } = await held();
    const statuses = [];
    for (let n = 0; n < 9; n++) statuses.push((await report(artifact(`a${n}`, megabyte, { append: n > 0 }))).status);
    expect(statuses).toEqual([...Array(8).fill(200), 413]);
    expect((await report(artifact('b', 'in its place'))).status).toBe(200);
    await report({ id: 'c', type: 'complete' });
    const task = await rpc(gateway, 'GetTask', { id }, { agent: 'box' });
    expect(task.artifacts).toEqual([{ artifactId: 'a', parts: [{ text: 'in its place' }] }]);
  });

  it('a report writes the content of the task again only when its log has doubled', async () => {
    const { id, report } = await held();
    const foldedOf = async () =>
      (await gateway.sql('select folded_seq from a2a_tasks where id = $1', [id]))[0].folded_seq;
    const folded: number[] = [];
    for (let n = 0; n < 40; n++) {
      await report(artifact(`a${n}`, 'x', { append: n > 0 }));
      folded.push(await foldedOf());
    }
    await report({ id: 'h', type: 'heartbeat' });
    await report({ id: 'p', type: 'progress', text: 'half' });
    expect([...new Set([...folded, await foldedOf()])]).toEqual([0, 16, 32]);
    await report({ id: 'c', type: 'complete' });
    const task = await rpc(gateway, 'GetTask', { id }, { agent: 'box' });
    expect(task.artifacts[0].parts).toHaveLength(40);
    expect(task.history.at(-1).parts).toEqual([{ text: 'half' }]);
  });

  it('abuse 35 a reader that does not read has a small buffer, and reads the rest from the log', async () => {
    const { id, report } = await held();
    const feed = gateway.gateway.get(TaskFeed);
    const inbox = feed.openInbox(id);
    for (let n = 0; n < 3; n++) await report(artifact(`a${n}`, 'x'.repeat(600_000)));
    expect(inbox.takeEvents(2)).toBeUndefined();
    feed.notifyReaders({ id, seq: 6 } as StoredTask, [{ seq: 6, body: {} as never }]);
    expect(inbox.takeEvents(5)).toEqual([{ seq: 6, body: {} }]);
    inbox.close();
  });

  it('abuse 30 a body with too many values is refused before it is parsed', async () => {
    const data = Array(100_001).fill(1);
    const { status, body } = await rpcCall(gateway, 'SendMessage', {
      message: userMessage('x', { parts: [{ data }] }),
    });
    expect([status, body.error.code, body.error.message]).toEqual([
      200,
      -32700,
      expect.stringContaining('100000 values'),
    ]);
  });

  describe('a stream', () => {
    it.each(['4', '5', '999999999'])('that resumes at %s, the end of its task, ends at once', async (after) => {
      const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x') });
      const headers = { 'last-event-id': after };
      const resumed = await rpcStream(gateway, 'SubscribeToTask', { id: task.id }, { headers });
      expect([resumed.status, await resumed.rest()]).toEqual([200, []]);
      const run = await openStream(`${gateway.url}/a2a/tasks/${task.id}/events`, {
        token: gateway.token,
        method: 'GET',
        headers,
      });
      expect((await run.rest()).map(({ event }) => event)).toEqual(['end']);
    });

    it('that resumes after the last event of a running task opens at once and delivers the next event', async () => {
      const { id, report } = await held();
      const resumed = await rpcStream(
        gateway,
        'SubscribeToTask',
        { id },
        { agent: 'box', headers: { 'last-event-id': '77' } },
      );
      await report({ id: 'c', type: 'complete' });
      expect((await resumed.rest()).map((frame) => frame.id)).toEqual([3]);
    });

    it('of an answer ends, for any spelling of the task id', async () => {
      const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x') }, { agent: 'asks' });
      const message = userMessage('this', { taskId: task.id.toUpperCase() });
      const frames = await (await rpcStream(gateway, 'SendStreamingMessage', { message }, { agent: 'asks' })).rest();
      expect(frames.at(-1)!.data.result.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
    });
  });

  it('the error of an unknown agent has the id of the request, but not for an unknown caller', async () => {
    const request = { jsonrpc: '2.0', id: 'x7', method: 'GetTask', params: { id: 'x' } };
    for (const path of ['/a2a/agents/absent', '/a2a/absent'])
      expect(await gateway.call('POST', path, request)).toMatchObject({ status: 404, body: { id: 'x7', error: {} } });
    expect((await gateway.call('POST', '/a2a/absent', '{')).body.id).toBeNull();
    expect(await gateway.call('POST', '/a2a/absent', request, null)).toMatchObject({ status: 401, body: { id: null } });
  });
});
