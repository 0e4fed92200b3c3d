import { eventually } from '../../support/gateway/eventually.js';
import { publish, rpc, rpcCall, rpcError, rpcStream, userMessage } from '../../support/clients/a2a.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { eventRows } from '../../support/gateway/event-rows.js';

describe('tasks of a published agent', () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startTestGateway();
    await publish(gateway);
    await publish(gateway, { name: 'slow', executor: { kind: 'echo', delayMs: 600, chunks: 3 } });
    await publish(gateway, { name: 'slower', executor: { kind: 'echo', delayMs: 4_000, chunks: 3 } });
    await publish(gateway, { name: 'asks', executor: { kind: 'echo', ask: 'Which colour?' } });
    await publish(gateway, { name: 'asleep', executor: { kind: 'echo', delayMs: 600_000 } });
  });

  afterAll(() => gateway.close());

  it('answers a message with its completed task, in one commit', async () => {
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('hello') });
    expect(task).toMatchObject({
      status: { state: 'TASK_STATE_COMPLETED', message: { role: 'ROLE_AGENT', parts: [{ text: 'hello' }] } },
      artifacts: [{ parts: [{ text: 'hello' }] }],
      history: [{ role: 'ROLE_USER', parts: [{ text: 'hello' }], taskId: task.id, contextId: task.contextId }],
    });
    expect(await rpc(gateway, 'GetTask', { id: task.id })).toEqual(task);
    const events = await gateway.sql(`select seq, terminal from ${eventRows} where task_id = $1 order by seq`, [
      task.id,
    ]);
    expect(events.map(({ seq, terminal }) => [seq, terminal])).toEqual([
      [1, false],
      [2, false],
      [3, false],
      [4, true],
    ]);
    const [audit] = await gateway.sql(
      `select event from audit_events where type = 'task_submit' order by at desc limit 1`,
    );
    expect(audit.event).toMatchObject({ outcome: 'completed', resource: { type: 'PublishedAgent', id: 'echo' } });
  });

  it('streams the task first, then its events, and ends', async () => {
    const stream = await rpcStream(
      gateway,
      'SendStreamingMessage',
      { message: userMessage('one two three') },
      { agent: 'slow' },
    );
    expect([stream.status, stream.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    const frames = await stream.rest();
    expect(frames.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(frames.map(({ data }) => Object.keys(data.result)[0])).toEqual([
      'task',
      'statusUpdate',
      'artifactUpdate',
      'artifactUpdate',
      'artifactUpdate',
      'statusUpdate',
    ]);
    const { id } = frames[0]!.data.result.task;
    const task = await rpc(gateway, 'GetTask', { id }, { agent: 'slow' });
    expect(task.artifacts[0].parts.map((part: any) => part.text).join('')).toBe('one two three');
  });

  it.each(['echo', 'slow'])('stores the log of a task of %s as it was streamed', async (agent) => {
    const message = { ...userMessage('one two'), metadata: { from: 'afar' } };
    const stream = await rpcStream(gateway, 'SendStreamingMessage', { message, metadata: { why: 'so' } }, { agent });
    const frames = await stream.rest();
    const { body } = await gateway.call('GET', `/api/a2a/tasks/${frames[0]!.data.result.task.id}`);
    expect(body.log.length).toBeGreaterThan(3);
    expect(body.log).toEqual(frames.map(({ id, data }) => ({ seq: id, event: data.result })));
  });

  it('returns at once on request, and a worker does the rest', async () => {
    const configuration = { returnImmediately: true };
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('later'), configuration });
    expect(task.status.state).toBe('TASK_STATE_SUBMITTED');
    const read = () => rpc(gateway, 'GetTask', { id: task.id });
    await eventually(read, ({ status }) => status.state === 'TASK_STATE_COMPLETED');
    // One commit stores the message, and one stores all its immediate results.
    const [row] = await gateway.sql(
      `select count(*)::int as events, count(distinct at)::int as commits from ${eventRows} where task_id = $1`,
      [task.id],
    );
    expect(row).toEqual({ events: 4, commits: 2 });
  });

  it('asks, waits, and continues with the answer', async () => {
    const asked = await rpc(gateway, 'SendMessage', { message: userMessage('paint') }, { agent: 'asks' });
    expect(asked.task.status).toMatchObject({
      state: 'TASK_STATE_INPUT_REQUIRED',
      message: { parts: [{ text: 'Which colour?' }] },
    });
    const { id: taskId, contextId } = asked.task;
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('red', { taskId }) }, { agent: 'asks' });
    expect(task).toMatchObject({
      id: taskId,
      contextId,
      status: { state: 'TASK_STATE_COMPLETED', message: { parts: [{ text: 'red' }] } },
    });
    expect(task.history.map((one: any) => one.parts[0].text)).toEqual(['paint', 'Which colour?', 'red']);
    const again = await rpcError(
      gateway,
      'SendMessage',
      { message: userMessage('more', { taskId }) },
      { agent: 'asks' },
    );
    expect(again.code).toBe(-32004);
  });

  it('cancels a running task, which never completes afterwards', async () => {
    const stream = await rpcStream(
      gateway,
      'SendStreamingMessage',
      { message: userMessage('zzz') },
      { agent: 'asleep' },
    );
    const first = await stream.next();
    const { id } = first!.data.result.task;
    const canceled = await rpc(gateway, 'CancelTask', { id }, { agent: 'asleep' });
    expect(canceled.status.state).toBe('TASK_STATE_CANCELED');
    const rest = await stream.rest();
    expect(rest.at(-1)!.data.result.statusUpdate.status.state).toBe('TASK_STATE_CANCELED');
    expect((await rpc(gateway, 'CancelTask', { id }, { agent: 'asleep' })).status.state).toBe('TASK_STATE_CANCELED');
    const done = await rpc(gateway, 'SendMessage', { message: userMessage('x') });
    expect((await rpcError(gateway, 'CancelTask', { id: done.task.id })).code).toBe(-32002);
  });

  it('(N14) one of two concurrent answers is accepted, and the other gets an error that states this', async () => {
    const asked = await rpc(gateway, 'SendMessage', { message: userMessage('paint') }, { agent: 'asks' });
    const answer = (text: string) => ({ message: userMessage(text, { taskId: asked.task.id }) });
    const both = ['red', 'blue'].map((text) => rpcCall(gateway, 'SendMessage', answer(text), { agent: 'asks' }));
    const answers = (await Promise.all(both)).map(({ body }) => body.error?.code ?? 'taken');
    expect(answers.sort()).toEqual([-32_004, 'taken']);
  });

  it('hides tasks from other callers', async () => {
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('mine') });
    const bob = await gateway.tokenOf('default', 'bob');
    const mallory = await gateway.tokenOf('globex', 'mallory', 'admin');
    const missing = await rpcError(gateway, 'GetTask', { id: '01900000-0000-7000-8000-000000000000' }, { token: bob });
    expect(missing.code).toBe(-32001);
    for (const [token, agent] of [
      [bob, 'echo'],
      [mallory, 'echo@default'],
    ] as const) {
      for (const method of ['GetTask', 'CancelTask', 'SubscribeToTask']) {
        const error = await rpcError(gateway, method, { id: task.id }, { token, agent });
        expect([error.code, error.message]).toEqual([missing.code, missing.message]);
      }
    }
    expect((await rpc(gateway, 'ListTasks', {}, { token: bob })).tasks).toEqual([]);
  });

  it('lists newest first, in pages without gaps or repeats', async () => {
    const carol = await gateway.tokenOf('default', 'carol');
    const ids: string[] = [];
    for (let index = 0; index < 7; index++)
      ids.unshift((await rpc(gateway, 'SendMessage', { message: userMessage(`t${index}`) }, { token: carol })).task.id);
    const seen: string[] = [];
    let pageToken = '';
    do {
      const page = await rpc(gateway, 'ListTasks', { pageSize: 3, ...(pageToken && { pageToken }) }, { token: carol });
      expect(page).toMatchObject({ pageSize: 3, totalSize: 7 });
      seen.push(...page.tasks.map((task: any) => task.id));
      expect(page.tasks.every((task: any) => !('artifacts' in task))).toBe(true);
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    expect(seen).toEqual(ids);
  });

  it('accepts a key once: the same message again is the same task, another message is refused', async () => {
    const send = (text: string, key: string) =>
      rpcCall(gateway, 'SendMessage', { message: userMessage(text) }, { headers: { 'Idempotency-Key': key } });
    const all = await Promise.all(Array.from({ length: 8 }, () => send('pay', 'k1')));
    expect(new Set(all.map(({ body }) => body.result.task.id)).size).toBe(1);
    expect((await send('pay twice', 'k1')).body.error.code).toBe(-32602);
    expect((await send('pay', 'k2')).body.result.task.id).not.toBe(all[0]!.body.result.task.id);
  });

  it('a subscriber gets the snapshot and the rest; after a number it gets exactly the missing events', async () => {
    const stream = await rpcStream(
      gateway,
      'SendStreamingMessage',
      { message: userMessage('a b c d e f') },
      { agent: 'slower' },
    );
    const { id } = (await stream.next())!.data.result.task;
    const subscriber = await rpcStream(gateway, 'SubscribeToTask', { id }, { agent: 'slower' });
    const snapshot = await subscriber.next();
    expect(snapshot!.data.result.task.id).toBe(id);
    const [rest, same] = await Promise.all([stream.rest(), subscriber.rest()]);
    expect(same.map((frame) => frame.id)).toEqual(rest.map((frame) => frame.id).filter((one) => one! > snapshot!.id!));
    const late = await rpcStream(
      gateway,
      'SubscribeToTask',
      { id },
      { agent: 'slower', headers: { 'Last-Event-ID': '2' } },
    );
    expect((await late.rest()).map((frame) => frame.id)).toEqual([3, 4, 5, 6]);
    expect((await rpcError(gateway, 'SubscribeToTask', { id }, { agent: 'slower' })).code).toBe(-32004);
  });
});
