import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { modernRequest } from '../../support/clients/mcp-clients.js';
import {
  askAgain,
  closeRemotes,
  continuationOf,
  quick,
  startRemote,
  type Remote,
} from '../../support/clients/remote-work.js';
import { artifacts, asyncTask, data, failed, never, sequence, text } from '../../support/stubs/stub-behaviours.js';
import type { Behaviour } from '../../support/stubs/stub-call.js';
import { hang } from '../../support/stubs/stub-hostile.js';

describe('remote work that outlives its call', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    // On a busy machine a poll may take longer than the usual timeout of these tests.
    gateway = await startTestGateway({ ...quick, A2A_CONTINUATION_POLL_TIMEOUT_MS: '2000' });
  });
  afterAll(async () => {
    await gateway.close();
    await closeRemotes();
  });

  const remote = (...how: Parameters<typeof startRemote> extends [any, ...infer Rest] ? Rest : never) =>
    startRemote(gateway, ...how);
  const ask = (taskId: string, token?: string, waitMs?: number) => askAgain(gateway, taskId, token, waitMs);
  const rowOf = (taskId: string) => continuationOf(gateway, taskId);
  const taskOf = async (taskId: string): Promise<any> => (await gateway.call('GET', `/api/a2a/tasks/${taskId}`)).body;
  const pollsOf = ({ agent }: Remote) => agent.requests.filter(({ operation }) => operation === 'get').length;

  it('AN-63 AN-64 AN-65 a call that outlives its caller is a task that can be read later', async () => {
    const seen: any[] = [];
    const one = await remote(asyncTask(30, data({ done: 'ü' })));
    one.agent.set(async (poll) => {
      seen.push(
        ...(await gateway.sql('select status from a2a_continuations where remote_task_id = $1', [poll.task.id])),
      );
      await poll.task.onGet!(poll);
    }, 'get');
    const working = await one.handed();
    expect(working).toMatchObject({ state: 'working', message: expect.stringContaining('task_status') });
    const { result } = await ask(working.taskId);
    expect(result.structuredContent).toEqual({ done: 'ü' });
    expect((await ask(working.taskId)).result).toEqual(result);
    expect(seen.map(({ status }) => status)).toEqual(Array(30).fill('processing')); // before the first poll, too
    expect(await rowOf(working.taskId)).toMatchObject({ status: 'completed', next_at: null, last_error: null });
    expect(one.agent.requests.filter(({ operation }) => operation === 'send')).toHaveLength(1);
    const { task, log } = await taskOf(working.taskId);
    expect(task).toMatchObject({
      status: { state: 'TASK_STATE_COMPLETED' },
      artifacts: [{ parts: [{ data: { done: 'ü' } }] }],
    });
    expect(log.filter(({ event }: any) => event.statusUpdate?.status.state === 'TASK_STATE_COMPLETED')).toHaveLength(1);
    const { result: list } = await gateway.rpc('tools/list', {});
    expect(list.tools.map(({ name }: any) => name)).toContain('task_status');
  });

  it('is deferred between its runs, and its status shows that', async () => {
    const one = await remote(never, { capabilities: { streaming: false } });
    const { taskId } = await one.handed();
    const row = await eventually(
      () => rowOf(taskId),
      ({ status }) => status === 'pending',
    );
    expect(row.next_at).toBeInstanceOf(Date);
    await eventually(
      () => rowOf(taskId),
      ({ attempts }) => attempts >= 2,
    );
    await gateway.call('POST', `/api/a2a/tasks/${taskId}/cancel`);
    expect(await one.agent.waitForCancels()).toEqual(['stub-task-1']);
    await eventually(
      () => rowOf(taskId),
      ({ status, ended_at: endedAt }) => status === 'completed' && endedAt !== null,
    );
    const { error } = await ask(taskId);
    expect([error.code, error.data]).toMatchObject([-32204, { taskId, state: 'canceled' }]);
  });

  it('work that settles while its caller waits is answered as usual', async () => {
    const one = await remote(asyncTask(2, text('soon')), { timeoutMs: 10_000 });
    expect((await one.call()).result.content).toEqual([{ type: 'text', text: 'soon' }]);
    const [row] = await gateway.sql('select * from a2a_continuations where agent_slug = $1', [one.slug]);
    expect(row).toMatchObject({ status: 'completed', attempts: 0, polls: 2 });
    expect((await taskOf(row.task_id)).state).toBe('completed');
  });

  it('a caller that leaves ends it', async () => {
    const one = await remote(never, { timeoutMs: 20_000 });
    const leaving = new AbortController();
    const { body, headers } = modernRequest('tools/call', { name: `${one.slug}.work`, arguments: {} }, 'leaving');
    const post = fetch(`${gateway.url}/mcp`, {
      method: 'POST',
      signal: leaving.signal,
      headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    }).catch(() => undefined);
    await one.agent.waitForRequests(2);
    leaving.abort();
    await post;
    expect(await one.agent.waitForCancels()).toEqual(['stub-task-1']);
    const [row] = await eventually(
      () => gateway.sql('select * from a2a_continuations where agent_slug = $1', [one.slug]),
      ([found]) => found?.status === 'completed',
    );
    expect((await taskOf(row.task_id)).state).toBe('canceled');
  });

  it('AN-70 AN-71 temporary errors are retried, with a new token', async () => {
    const one = await remote(never);
    one.agent.set(
      sequence(
        (it) => it.send(401, ''),
        (it) => it.send(508, ''),
        (it) => it.cutOff('reset'),
        hang,
        (it) => it.error(-32001, 'Invalid or expired A2A token'),
        (it) => it.send(429, '', { 'retry-after': '1' }),
        data({ at: 'last' }),
      ),
      'get',
    );
    const { taskId } = await one.handed();
    const { result } = await ask(taskId, undefined, 30_000);
    expect(result.structuredContent).toEqual({ at: 'last' });
    expect(pollsOf(one)).toBe(7);
  });

  it('AN-70 the remote agent is not polled for the time that it asked for', async () => {
    const one = await remote(never, { timeoutMs: 1_000 });
    one.agent.set(
      sequence((it) => it.send(429, '', { 'retry-after': '2' }), data({ at: 'last' })),
      'get',
    );
    const { taskId } = await one.handed();
    const { result } = await ask(taskId, undefined, 30_000);
    expect(result.structuredContent).toEqual({ at: 'last' });
    const [refused, next] = one.agent.requests.filter(({ operation }) => operation === 'get');
    expect(next!.at - refused!.at).toBeGreaterThan(1_900);
  });

  it('AN-72 an end without an answer is reported as such', async () => {
    const one = await remote(asyncTask(30, artifacts()));
    const { taskId } = await one.handed();
    const { result } = await ask(taskId);
    expect(result.content[0].text).toBe(`The agent ${one.slug} finished its task without an answer.`);
  });

  it('AN-73 a failure names its ids and no secret', async () => {
    const secret = 'Bearer abcdefghijklmnop';
    const one = await remote(asyncTask(30, failed(`upstream said no to ${secret}`)));
    const { taskId } = await one.handed();
    const { error } = await ask(taskId);
    const row = await rowOf(taskId);
    expect(error.code).toBe(-32204);
    const ids = `request: ${row.request_id}; continuation: ${row.id}; downstream task: stub-task-1`;
    expect(error.message).toBe(`upstream said no to [redacted] [code: remote_task_failed; ${ids}]`);
    expect(JSON.stringify([error, await taskOf(taskId), row])).not.toContain('abcdefghijklmnop');
    expect(row.status).toBe('completed');
  });

  it('the credential of a call in the answer of an agent is never returned', async () => {
    const value = 'canary-of-the-agent';
    const reply = `not with ${value}, nor with ${Buffer.from(value).toString('base64url')}`;
    const one = await remote(asyncTask(30, failed(reply)));
    const credential = { type: 'apiKey', header: 'x-api-key', value };
    expect((await gateway.call('PATCH', `/api/a2a/agents/${one.slug}`, { credential })).status).toBe(200);
    const { taskId } = await one.handed();
    const { error } = await ask(taskId);
    expect(error.message).toContain('not with [redacted], nor with [redacted]');
    one.agent.set((it) => it.error(-32000, reply));
    const { error: refused } = await one.call();
    expect(refused).toMatchObject({ message: 'not with [redacted], nor with [redacted]' });
    expect(one.agent.requests.at(-1)!.headers['x-api-key']).toBe(value);
    expect(JSON.stringify([error, refused, await taskOf(taskId), await rowOf(taskId)])).not.toContain(value);
  });

  it.each<[string, Behaviour]>([
    ['-32001', (it) => it.error(-32001, 'Task not found')],
    ['404', (it) => it.json(404, {})],
    ['410', (it) => it.json(410, {})],
  ])('a task that the remote agent has lost fails at once (%s)', async (how, lost) => {
    const one = await remote(never);
    const { taskId } = await one.handed();
    one.agent.set(lost, 'get');
    const { error } = await ask(taskId);
    const words = new RegExp(`^The agent ${one.slug} no longer knows the task\\. \\[code: remote_lost; request: `);
    expect(error).toMatchObject({ code: -32204, message: expect.stringMatching(words) });
    expect(await rowOf(taskId)).toMatchObject({
      status: 'failed',
      last_error: how === '-32001' ? expect.stringContaining('Task not found') : expect.any(String),
    });
    expect((await taskOf(taskId)).task.status.message.metadata).toMatchObject({ errorCode: 'remote_lost' });
  });

  it('AN-74 of many concurrent claimers one wins', async () => {
    const one = await remote(never, { capabilities: { streaming: false } });
    const { taskId } = await one.handed();
    await eventually(
      () => rowOf(taskId),
      ({ status }) => status === 'pending',
    );
    await gateway.sql(`update a2a_tasks set next_at = now() + interval '1 hour' where id = $1`, [taskId]);
    const before = await eventually(
      () => rowOf(taskId),
      ({ status }) => status === 'pending',
    );
    await gateway.sql('update a2a_tasks set next_at = now() where id = $1', [taskId]);
    const { TaskClaimer } = await import('../../../src/tasks/run/task-claimer.js');
    const claimer = gateway.gateway.get(TaskClaimer);
    await Promise.all(Array.from({ length: 10 }, () => claimer.beginTask(taskId as never)));
    expect((await rowOf(taskId)).attempts).toBe(before.attempts + 1);
  });

  it('AN-67 AN-76 abandoned work is taken over by another process', async () => {
    const one = await remote(asyncTask(30, data({ found: true })));
    const { taskId } = await one.handed();
    // The state after a killed process: leased by a process that does not exist.
    await gateway.sql(
      `update a2a_tasks set lease_owner = 7, lease_until = now() + interval '1 hour', next_at = now(),
         lease_epoch = lease_epoch + 1 where id = $1`,
      [taskId],
    );
    expect((await ask(taskId)).result.structuredContent).toEqual({ found: true });
    const { log } = await taskOf(taskId);
    expect(log.filter(({ event }: any) => event.statusUpdate?.status.state === 'TASK_STATE_COMPLETED')).toHaveLength(1);
  });

  it('AN-100 is resumed by an internal call that is signed for it alone', async () => {
    const { signInternalToken } = await import('../../../src/platform/secrets/internal-token.js');
    const { testSecret } = await import('../../support/gateway/gateway.js');
    const [one, other] = [await remote(never), await remote(never)];
    const ids = await Promise.all([one, other].map(async (each) => (await rowOf((await each.handed()).taskId)).id));
    const path = '/_agent-native/integrations/process-a2a-continuation';
    const wake = (continuationId: string, token: string | null) =>
      gateway.call('POST', path, { continuationId }, token);
    const [mine, theirs] = ids.map((id) => signInternalToken(testSecret, id, Date.now()));
    expect((await wake(ids[0], null)).status).toBe(401);
    expect((await wake(ids[0], theirs!)).status).toBe(401);
    expect((await gateway.call('POST', path, {}, mine)).status).toBe(400);
    await gateway.sql(
      `update a2a_tasks set next_at = now() + interval '1 hour', lease_owner = null, lease_until = null
       where id = (select task_id from a2a_continuations where id = $1)`,
      [ids[0]],
    );
    await gateway.sql(`update a2a_continuations set status = 'pending' where id = $1`, [ids[0]]);
    expect((await wake(ids[0], mine!)).body).toEqual({ ok: true, continuationId: ids[0], woken: true });
    await eventually(
      () => gateway.sql('select status from a2a_continuations where id = $1', [ids[0]]),
      ([row]) => row!.status === 'processing',
    );
  });

  it('work that another process ended is canceled at its remote agent', async () => {
    const one = await remote(never);
    const { taskId } = await one.handed();
    await gateway.sql(
      `update a2a_tasks set status_state = 'failed', next_at = null, lease_owner = null, lease_until = null,
         lease_epoch = lease_epoch + 1 where id = $1`,
      [taskId],
    );
    await gateway.sql(`update a2a_continuations set updated_at = now() - interval '1 minute' where task_id = $1`, [
      taskId,
    ]);
    expect(await one.agent.waitForCancels()).toEqual(['stub-task-1']);
    await eventually(
      () => rowOf(taskId),
      ({ ended_at: endedAt }) => endedAt !== null,
    );
  });

  it('is listed, hurried and abandoned by its org, and invisible to others', async () => {
    const one = await remote(never);
    const { taskId } = await one.handed();
    const { body } = await gateway.call('GET', `/api/a2a/continuations?taskId=${taskId}`);
    const [item] = body.items;
    expect(item).toMatchObject({
      taskId,
      agent: one.slug,
      remoteTaskId: 'stub-task-1',
      maxAttempts: 20,
      endedAt: null,
    });
    expect((await gateway.call('GET', `/api/a2a/continuations/${item.id}`)).body).toMatchObject({
      id: item.id,
      taskId,
    });
    const page = await gateway.call('GET', '/api/a2a/continuations?limit=1');
    expect(page.body.items).toHaveLength(1);
    const next = await gateway.call('GET', `/api/a2a/continuations?limit=1&cursor=${page.body.nextCursor}`);
    expect(next.body.items[0].id).not.toBe(page.body.items[0].id);

    const stranger = await gateway.tokenOf('elsewhere', 'eve', 'admin');
    expect((await gateway.call('GET', '/api/a2a/continuations', undefined, stranger)).body.items).toEqual([]);
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/retry'],
      ['POST', '/fail'],
    ])
      expect(
        (await gateway.call(method!, `/api/a2a/continuations/${item.id}${path}`, undefined, stranger)).status,
      ).toBe(404);
    expect((await ask(taskId, stranger)).error.data.code).toBe('task_not_found');

    expect((await gateway.call('POST', `/api/a2a/continuations/${item.id}/retry`)).status).toBe(200);
    const failedOne = await gateway.call('POST', `/api/a2a/continuations/${item.id}/fail`);
    expect(failedOne.body).toMatchObject({ status: 'failed', lastError: 'given up by an operator' });
    expect(await one.agent.waitForCancels()).toEqual(['stub-task-1']);
    expect((await taskOf(taskId)).task.status.message.parts[0].text).toContain(one.slug);
    expect((await gateway.call('POST', `/api/a2a/continuations/${item.id}/retry`)).status).toBe(409);
    expect((await gateway.call('POST', `/api/a2a/continuations/${item.id}/fail`)).status).toBe(409);
  });

  it('is visible to its caller and to admins, and invisible to all others', async () => {
    const one = await remote(never);
    const [owner, other, viewer] = await Promise.all([
      gateway.tokenOf('default', 'olga', 'member'),
      gateway.tokenOf('default', 'paul', 'member'),
      gateway.tokenOf('default', 'vera', 'viewer'),
    ]);
    await gateway.call('POST', '/api/policies', {
      name: `use-${one.slug}`,
      text: `permit(principal, action == Action::"a2a_invoke", resource in A2AAgent::"${one.slug}");`,
    });
    const { result } = await gateway.rpc('tools/call', { name: `${one.slug}.work`, arguments: {} }, owner);
    const { taskId } = result.structuredContent;
    const seenBy = (token?: string) => gateway.call('GET', `/api/a2a/continuations?taskId=${taskId}`, undefined, token);
    const [{ id }] = (await seenBy()).body.items;
    const get = async (token: string) =>
      (await gateway.call('GET', `/api/a2a/continuations/${id}`, undefined, token)).status;
    expect((await seenBy(owner)).body.items).toMatchObject([{ id, taskId }]);
    expect(await get(owner)).toBe(200);
    for (const token of [other, viewer]) {
      expect((await seenBy(token)).body.items).toEqual([]);
      expect(await get(token)).toBe(404);
    }
    await gateway.call('POST', `/api/a2a/tasks/${taskId}/cancel`);
  });

  it('the call counts as active until its work is over, and then once', async () => {
    const one = await remote(never, { capabilities: { streaming: false } });
    const { taskId } = await one.handed();
    const instances = () => gateway.sql('select status from a2a_task_instances where agent_name = $1', [one.slug]);
    expect(await instances()).toEqual([{ status: 'active' }]);
    one.agent.set(data({ n: 1 }), 'get');
    await ask(taskId);
    expect(await instances()).toEqual([{ status: 'completed' }]);
    const outcomes = await gateway.sql(
      'select o.successes, o.failures from agent_outcomes o join agent_cards a on a.id = o.agent_id where a.slug = $1',
      [one.slug],
    );
    expect(outcomes).toEqual([{ successes: '1', failures: '0' }]);
  });

  it('a published agent with remote work has a continuation too', async () => {
    const one = await remote(asyncTask(5, text('by poll')), { capabilities: { streaming: false } });
    const name = `ours-${one.slug.replace('_', '-')}`;
    await publish(gateway, { name, executor: { kind: 'remote', agentId: one.slug } });
    const known: any[] = [];
    one.agent.set(async (poll) => {
      known.push(
        await gateway.sql(
          `select t.memo->>'taskId' as memo, c.status
           from a2a_tasks t join a2a_continuations c on c.task_id = t.id
           where c.agent_slug = $1`,
          [one.slug],
        ),
      );
      await poll.task.onGet!(poll);
    }, 'get');
    // A slow commit: a poll before its end would poll work that a crash would lose.
    await gateway.sql(
      `create function dawdle() returns trigger language plpgsql as $$ begin perform pg_sleep(1); return new; end $$`,
    );
    await gateway.sql(
      `create trigger dawdle before insert on a2a_continuations
       for each row when (new.agent_slug = '${one.slug}') execute function dawdle()`,
    );
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x') }, { agent: name });
    await gateway.sql('drop function dawdle cascade');
    expect(task.artifacts[0].parts).toEqual([{ text: 'by poll' }]);
    expect(known[0]).toEqual([{ memo: 'stub-task-1', status: 'processing' }]); // before the first poll
    expect(await rowOf(task.id)).toMatchObject({ status: 'completed', remote_task_id: 'stub-task-1' });
  });
});
