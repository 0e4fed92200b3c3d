import { ThreadAnswerStore } from '../../../src/continuations/threads/thread-answer.store.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { closeRemotes, quick, startRemote, type Remote } from '../../support/clients/remote-work.js';
import { asyncTask, data, failed, never, state, text } from '../../support/stubs/stub-behaviours.js';
import { startWebhookSink, type Received, type Reply, type WebhookSink } from '../../support/stubs/webhook-sink.js';

const token = 'canary-of-the-thread';
const streamless = { capabilities: { streaming: false } };

describe('a conversation thread gets the answer of continued work', () => {
  let gateway: TestGateway;
  /** A gateway with doors but no worker: only the test claims work. */
  let doors: TestGateway;
  let sink: WebhookSink;
  beforeAll(async () => {
    gateway = await startTestGateway(quick);
    doors = await startTestGateway({ ...quick, RIALTO_ROLE: 'api' });
    sink = await startWebhookSink();
  });
  afterAll(async () => {
    await Promise.all([gateway.close(), doors.close()]);
    await Promise.all([closeRemotes(), sink.close()]);
  });
  let threads = 0;
  let thread: { url: string; id: string; token?: string };
  beforeEach(() => {
    sink.received.length = 0;
    sink.script([]);
    thread = { url: `${sink.url}/thread?key=k`, id: `thread-${(threads += 1)}`, token };
  });

  const invoke = async ({ slug }: Remote, more: object = {}, of = gateway): Promise<any> =>
    (await of.call('POST', '/api/a2a/invoke', { agentCardId: slug, skillId: 'work', thread, ...more })).body;
  const rowOf = async (taskId: string, of = gateway): Promise<any> =>
    (await of.sql('select * from thread_answers where task_id = $1', [taskId]))[0];
  const over = (taskId: string) =>
    eventually(
      () => rowOf(taskId),
      ({ ended_at: endedAt }) => endedAt !== null,
    );
  const answers = () => sink.received.filter(({ body }) => body.type === 'answer');
  const progress = () => sink.received.filter(({ body }) => body.type === 'progress');
  const arrived = (posts: () => Received[], count = 1) =>
    eventually(
      () => posts(),
      ({ length }) => length >= count,
    );
  /** Waits for this many more polls of its task. */
  const polled = async ({ agent }: Remote, more: number) => {
    const polls = () => agent.requests.filter(({ operation }) => operation === 'get').length;
    const before = polls();
    await eventually(polls, (count) => count >= before + more);
  };
  const scrubbed = { token: null, payload: null, owns_progress: false, lease_until: null };

  it.each(['invoke', 'dispatch'] as const)(
    'AN-75 the answer to %s is sent once, with a mark, and then deleted',
    async (step) => {
      const skills = [{ id: 'work', tags: [`threaded-${step}`] }];
      const remote = await startRemote(gateway, never, { ...streamless, skills });
      sink.script([{ status: 201, body: '{"id":"message-7"}' }], true);
      const templated = { ...thread, id: '{{to}}' };
      const wanted =
        step === 'invoke'
          ? { agentCardId: remote.slug, skillId: 'work' }
          : { workType: 'x', requiredSkills: skills[0]!.tags };
      const body = { ...wanted, thread: templated, context: { to: thread.id } };
      const { body: answer } = await gateway.call('POST', `/api/a2a/${step}`, body);
      expect(answer.output).toMatchObject({ state: 'working' });
      const { taskId } = answer;
      const waiting = await eventually(
        () => rowOf(taskId),
        ({ status }) => status === 'waiting',
      );
      expect(JSON.stringify(waiting)).not.toContain('key=k');
      remote.agent.set(text(`by ${step}`), 'get');
      expect(JSON.stringify(waiting)).not.toContain(token);
      expect(waiting).toMatchObject({ thread_id: thread.id, token: expect.stringMatching(/^v1\./) });
      const row = await over(taskId);
      expect(row).toMatchObject({ status: 'delivered', receipt: { status: 201, messageId: 'message-7' }, attempts: 1 });
      expect(row).toMatchObject(scrubbed);
      const [post, ...more] = answers();
      expect(more).toEqual([]);
      expect(post!.headers).toMatchObject({ 'idempotency-key': row.id, authorization: `Bearer ${token}` });
      const { slug: agent } = remote;
      expect(post!.body).toEqual({
        id: row.id,
        type: 'answer',
        thread: thread.id,
        taskId,
        agent,
        state: 'completed',
        text: `by ${step}`,
      });
      const { body: list } = await gateway.call('GET', `/api/a2a/continuations?taskId=${taskId}`);
      expect(list.items[0].thread).toEqual({ status: 'delivered', attempts: 1, lastError: null });
    },
  );

  it('AN-75 after a receipt it is never sent again, even after a crash', async () => {
    const remote = await startRemote(gateway, asyncTask(30, data({ n: 7 })));
    await gateway.sql(
      `create function dies() returns trigger language plpgsql as $$ begin raise exception 'dies'; end $$`,
    );
    await gateway.sql(
      `create trigger dies before update on thread_answers
       for each row when (new.status = 'delivered') execute function dies()`,
    );
    const { taskId } = await invoke(remote);
    const row = await eventually(
      () => rowOf(taskId),
      ({ status }) => status === 'received',
    );
    expect([row.receipt, row.payload.text]).toEqual([{ status: 200 }, '{"n":7}']);
    await gateway.sql('drop function dies cascade');
    // The state after a killed process.
    await gateway.sql('update thread_answers set lease_owner = 7 where id = $1', [row.id]);
    expect(await over(taskId)).toMatchObject({ status: 'delivered', ...scrubbed });
    expect(answers()).toHaveLength(1);
  });

  it('AN-75 one of ten claimers wins, and an earlier holder is fenced', async () => {
    const remote = await startRemote(doors, never);
    const { taskId } = await invoke(remote, {}, doors);
    const { id } = await eventually(
      () => rowOf(taskId, doors),
      ({ status }) => status === 'waiting',
    );
    const store = doors.gateway.get(ThreadAnswerStore);
    const claims = await Promise.all(Array.from({ length: 10 }, () => store.claim(id)));
    const [claimed, ...more] = claims.filter((each) => each !== undefined);
    expect([more, await store.claim(id)]).toEqual([[], undefined]);
    await doors.sql('update thread_answers set lease_owner = 7 where id = $1', [id]);
    expect(await store.claim(id)).toMatchObject({ leaseEpoch: claimed!.leaseEpoch + 1 });
    const stale = [
      await store.beginDelivery(claimed!, {}),
      await store.keepReceipt(claimed!, { status: 200 }),
      await store.finish(claimed!),
      await store.bury(claimed!, 'x'),
    ];
    expect(stale).toEqual([false, false, false, false]);
    expect(await rowOf(taskId, doors)).toMatchObject({ status: 'waiting', payload: null, receipt: null });
  });

  it('AN-77 one of two continuations of a thread owns the progress message, and the other gets it later', async () => {
    const [first, second] = [
      await startRemote(gateway, never, streamless),
      await startRemote(gateway, never, streamless),
    ];
    const { taskId: firstId } = await invoke(first);
    await arrived(progress);
    const { taskId: secondId } = await invoke(second);
    const elsewhere = await startRemote(gateway, never, streamless);
    const { taskId: otherId } = await invoke(elsewhere, { thread: { ...thread, id: 'another' } });
    const messagesOf = (taskId: string) => () => progress().filter(({ body }) => body.taskId === taskId);
    await arrived(messagesOf(otherId)); // another thread has its own owner
    second.agent.set(state('working', 'news of the second'), 'get');
    await polled(second, 2); // the first of them may have begun before
    first.agent.set(state('working', 'news of the first'), 'get');
    await arrived(messagesOf(firstId), 2);
    expect(messagesOf(firstId)().map(({ body }) => body.text)).toEqual([
      `The agent ${first.slug} still works on it.`,
      'news of the first',
    ]);
    expect(messagesOf(secondId)()).toEqual([]);
    const owners = () =>
      gateway.sql('select task_id from thread_answers where thread_id = $1 and owns_progress', [thread.id]);
    expect(await owners()).toEqual([{ task_id: firstId }]);
    const steal = gateway.sql('update thread_answers set owns_progress = true where task_id = $1', [secondId]);
    await expect(steal).rejects.toThrow('uq_thread_answers_progress');
    first.agent.set(text('the end of the first'), 'get');
    const [handed] = await arrived(messagesOf(secondId));
    expect(handed!.body.text).toBe('news of the second');
    expect(await owners()).toEqual([{ task_id: secondId }]);
    expect(await over(firstId)).toMatchObject({ status: 'delivered', ...scrubbed });
    expect(new Set(sink.received.map(({ headers }) => headers['idempotency-key'])).size).toBe(sink.received.length);
    for (const { agent } of [second, elsewhere]) agent.set(text('done'), 'get');
    await Promise.all([over(secondId), over(otherId)]);
  });

  it('gets no message when the caller received the answer itself', async () => {
    const remote = await startRemote(gateway, asyncTask(2, text('soon')), { timeoutMs: 10_000 });
    expect((await invoke(remote)).output).toBe('soon');
    remote.agent.set(asyncTask(2, failed('no')));
    expect((await invoke(remote)).code).toBe('remote_task_failed');
    const rows = await gateway.sql(
      'select t.* from thread_answers t join a2a_continuations c using (task_id) where c.agent_slug = $1',
      [remote.slug],
    );
    expect(rows).toMatchObject([
      { status: 'answered', ...scrubbed },
      { status: 'answered', ...scrubbed },
    ]);
    remote.agent.set(text('at once'));
    expect((await invoke(remote)).output).toBe('at once');
    expect(sink.received).toEqual([]);
  });

  it('gets failures and cancels, too', async () => {
    const failing = await startRemote(gateway, asyncTask(30, failed('no luck with Bearer abcdefghijklmnop')));
    const { taskId } = await invoke(failing);
    const [post] = await arrived(answers);
    expect(post!.body).toMatchObject({
      taskId,
      state: 'failed',
      text: expect.stringContaining('no luck with [redacted]'),
    });
    const one = await startRemote(gateway, never);
    const { taskId: canceledId } = await invoke(one);
    await gateway.call('POST', `/api/a2a/tasks/${canceledId}/cancel`);
    const [, canceled] = await arrived(answers, 2);
    expect(canceled!.body).toMatchObject({
      taskId: canceledId,
      state: 'canceled',
      text: 'The task ended as canceled.',
    });
  });

  it('AN-75 a failing receiver is retried with the same mark, and abandoned with a reason', async () => {
    const remote = await startRemote(gateway, never, streamless);
    /**
     * Ends the task only after its progress message has arrived, because that message is sent once and must not use a
     * reply for the answer.
     */
    const ended = async (replies: Reply[]): Promise<string> => {
      const { taskId } = await invoke(remote);
      await arrived(progress);
      sink.script(replies, true);
      remote.agent.set(text('again'), 'get');
      return taskId;
    };
    const afresh = (): void => {
      remote.agent.set(undefined, 'get');
      sink.received.length = 0;
      sink.script([]);
    };
    const row = await over(await ended([503, 'break off', 'say back']));
    expect(row).toMatchObject({ status: 'delivered', attempts: 3, receipt: { status: 200 }, ...scrubbed });
    expect(answers().map(({ headers, body }) => [headers['idempotency-key'], body])).toEqual(
      Array(3).fill([row.id, answers()[0]!.body]),
    );
    expect(JSON.stringify(row)).not.toContain(token); // the receiver returned it

    afresh();
    const gone = await over(await ended([410]));
    expect(gone).toMatchObject({ status: 'dead', last_error: 'gone: status_410', attempts: 1, ...scrubbed });

    afresh();
    const tried = await ended([{ status: 500, body: token }]);
    await gateway.sql('update thread_answers set attempts = 6 where task_id = $1', [tried]);
    const dead = await over(tried);
    expect(dead).toMatchObject({ status: 'dead', last_error: 'exhausted: status_500', attempts: 7, ...scrubbed });
    expect(gateway.log.join('\n')).not.toContain(token);
    const { body } = await gateway.call('GET', `/api/a2a/continuations?taskId=${tried}`);
    expect(body.items[0].thread).toEqual({ status: 'dead', attempts: 7, lastError: 'exhausted: status_500' });
  });

  it.each([
    ['invoke', { url: 'http://169.254.169.254/t' }, 422, 'url_not_allowed'],
    ['dispatch', { url: 'http://10.0.0.1/t' }, 422, 'url_not_allowed'],
    ['invoke', { url: 'file:///etc/passwd' }, 422, 'url_not_allowed'],
    ['invoke', { token: 'two\r\nlines' }, 400, 'invalid_params'],
    ['dispatch', { id: '' }, 400, 'invalid_params'],
    ['invoke', { secret: 'x' }, 400, 'invalid_params'],
  ])('abuse 22: %s refuses such a thread (%#), and calls no agent', async (step, more, status, code) => {
    const remote = await startRemote(gateway, never, { skills: [{ id: 'work', tags: ['unthreaded'] }] });
    const wanted =
      step === 'invoke'
        ? { agentCardId: remote.slug, skillId: 'work' }
        : { workType: 'x', requiredSkills: ['unthreaded'] };
    const answer = await gateway.call('POST', `/api/a2a/${step}`, { ...wanted, thread: { ...thread, ...more } });
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect(remote.agent.requests).toEqual([]);
  });

  it('a caller that may not use webhooks is refused', async () => {
    const remote = await startRemote(gateway, never);
    const text = `forbid(principal == User::"mute", action == Action::"push_configure", resource);`;
    expect((await gateway.call('POST', '/api/policies', { name: 'mute', text })).status).toBe(201);
    const mute = await gateway.tokenOf('default', 'mute');
    const body = { agentCardId: remote.slug, skillId: 'work', thread };
    const answer = await gateway.call('POST', '/api/a2a/invoke', body, mute);
    expect([answer.status, answer.body.code]).toEqual([403, 'denied']);
    const [denial] = (await gateway.call('GET', '/api/audit/events?type=push_configure')).body.items;
    expect(denial).toMatchObject({ outcome: 'denied', principal: { id: 'mute' } });
    expect(remote.agent.requests).toEqual([]);
  });
});
