import { openStream, publish, rpc, rpcCall, rpcError, rpcStream, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startWebhookSink } from '../../support/stubs/webhook-sink.js';

const native = '/_agent-native/a2a';
const say = (text: string, more: object = {}) => ({
  message: { kind: 'message', messageId: `m-${Math.random()}`, role: 'user', parts: [{ kind: 'text', text }] },
  ...more,
});

describe('task behaviour of the reference systems', () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startTestGateway();
    await publish(gateway, { handle: 'kofi' });
    await publish(gateway, { name: 'asks', executor: { kind: 'echo', ask: 'Which colour?' } });
    await publish(gateway, { name: 'slow', executor: { kind: 'echo', delayMs: 1_500, chunks: 2 } });
    await publish(gateway, { name: 'slower', executor: { kind: 'echo', delayMs: 6_000, chunks: 2 } });
    await publish(gateway, { name: 'asleep', executor: { kind: 'echo', delayMs: 600_000 } });
    await publish(gateway, { name: 'still', streaming: false, pushNotifications: false });
    await publish(gateway, { name: 'writer', defaultInputModes: ['text/plain'] });
    await publish(gateway, { name: 'lasting', history: 'agent' });
    await publish(gateway, { name: 'shy', a2a_enabled: false });
    await gateway.call('PATCH', '/api/orgs/default', { defaultAgent: 'echo' });
  });

  afterAll(() => gateway.close());

  it('AN-98: the status message has the response, in a reply and in a stream', async () => {
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('hello') });
    expect(task.status.message.parts).toEqual([{ text: 'hello' }]);
    const frames = await (await rpcStream(gateway, 'message/stream', say('hello'), { agent: native })).rest();
    expect(frames.at(-1)!.data.result.status.message.parts).toEqual([{ kind: 'text', text: 'hello' }]);
  });

  it('AN-13 RI-18 RI-38 RI-39: streams are status and artifact updates, and end with a terminal state', async () => {
    for (const method of ['message/stream', 'tasks/sendSubscribe']) {
      const frames = await (await rpcStream(gateway, method, say('hello'), { agent: native })).rest();
      expect(frames.map(({ data }) => data.result.kind)).toEqual([
        'task',
        'status-update',
        'artifact-update',
        'status-update',
      ]);
      expect(frames.at(-1)!.data.result).toMatchObject({ final: true, status: { state: 'completed' } });
    }
  });

  it('AN-14 RI-19: tasks are read with status and history, canceled, and not found', async () => {
    const task = await rpc(gateway, 'tasks/send', say('hello'), { agent: native });
    const seen = await rpc(gateway, 'tasks/get', { id: task.id }, { agent: native });
    expect(seen).toMatchObject({ status: { state: 'completed' }, history: [{ role: 'user' }] });
    for (const method of ['tasks/get', 'tasks/cancel'])
      expect((await rpcError(gateway, method, { id: 'nobody' }, { agent: native })).code).toBe(-32001);
  });

  it('AN-20 RI-29…RI-34: each state has its name', async () => {
    const words = new Set<string>();
    const watch = async (agent: string, params: object) => {
      for (const { data } of await (await rpcStream(gateway, 'message/stream', params, { agent })).rest())
        if (data.result.status) words.add(data.result.status.state);
    };
    await watch('echo', say('x'));
    await watch('asks', say('x'));
    const running = await rpc(gateway, 'message/send', say('x', { configuration: { blocking: false } }), {
      agent: 'asleep',
    });
    words.add((await rpc(gateway, 'tasks/cancel', { id: running.id }, { agent: 'asleep' })).status.state);
    const service = await startWebhookSink();
    service.script([400], true);
    await publish(gateway, { name: 'broken', executor: { kind: 'http', url: service.url } });
    words.add((await rpc(gateway, 'message/send', say('x'), { agent: 'broken' })).status.state);
    await service.close();
    expect([...words].sort()).toEqual(['canceled', 'completed', 'failed', 'input-required', 'submitted', 'working']);
  });

  it('commits each message of a task together with its audit event, and records a refused answer', async () => {
    const agent = 'asks-twice';
    await publish(gateway, { name: agent, executor: { kind: 'echo', ask: 'Which colour?' } });
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x') }, { agent });
    const answer = { message: userMessage('blue', { taskId: task.id }) };
    const both = await Promise.all([1, 2].map(() => rpcCall(gateway, 'SendMessage', answer, { agent })));
    expect(both.filter(({ body }) => body.error)).toHaveLength(1);
    const events = await gateway.sql(
      `select a.event->>'outcome' as outcome, e.seq
       from audit_events a
       left join a2a_task_events e on e.task_id = $1 and e.xmin = a.xmin
       where a.type = 'task_submit' and a.event->>'verb' = 'asks-twice'
       order by e.seq nulls last`,
      [task.id],
    );
    expect(events).toEqual([
      { outcome: 'completed', seq: expect.any(Number) },
      { outcome: 'completed', seq: expect.any(Number) },
      { outcome: 'failed', seq: null },
    ]);
  });

  it('AN-53 RI-46: a key is one task per owner, and free again after a cancel', async () => {
    const params = { ...say('pay'), idempotencyKey: 'key-1', configuration: { blocking: false } };
    const first = await rpc(gateway, 'message/send', params, { agent: 'asleep' });
    expect((await rpc(gateway, 'message/send', params, { agent: 'asleep' })).id).toBe(first.id);
    const bob = await gateway.tokenOf('default', 'bob');
    const of = await rpc(gateway, 'message/send', params, { agent: 'asleep', token: bob });
    expect(of.id).not.toBe(first.id);
    await rpc(gateway, 'tasks/cancel', { id: first.id }, { agent: 'asleep' });
    const again = await rpc(gateway, 'message/send', params, { agent: 'asleep' });
    expect(again.id).not.toBe(first.id);
    for (const id of [again.id]) await rpc(gateway, 'tasks/cancel', { id }, { agent: 'asleep' });
    await rpc(gateway, 'tasks/cancel', { id: of.id }, { agent: 'asleep', token: bob });
    const long = { ...params, idempotencyKey: 'x'.repeat(256) };
    expect((await rpcError(gateway, 'message/send', long, { agent: 'asleep' })).code).toBe(-32602);
  });

  it('(N14) RI-46: a new task and an earlier one of the same key are distinguished on every binding', async () => {
    const replayed = ({ headers }: { headers: Headers }) => headers.get('idempotent-replayed');
    const key = (name: string) => ({ 'idempotency-key': name });
    const rest = (name?: string, more = {}) => {
      const body = { message: { ...userMessage('x'), messageId: 'm-46' }, ...more };
      return gateway.call(
        'POST',
        '/a2a/agents/echo/message:send',
        body,
        undefined,
        name === undefined ? {} : key(name),
      );
    };
    const [made, known, keyless] = [await rest('k-46'), await rest('k-46'), await rest()];
    expect([made, known, keyless].map(({ status }) => status)).toEqual([201, 200, 200]);
    expect([made, known, keyless].map(replayed)).toEqual([null, 'true', null]);
    expect(known.body.task.id).toBe(made.body.task.id);
    expect((await rest(undefined, { idempotencyKey: 'k-47' })).status).toBe(201);
    expect((await rest(undefined, { idempotencyKey: 'k-47' })).status).toBe(200);
    for (const method of ['SendMessage', 'SendStreamingMessage'])
      for (const before of [null, 'true']) {
        const params = { message: { ...userMessage('y'), messageId: 'm-47' } };
        expect(replayed(await rpcCall(gateway, method, params, { headers: key(method) }))).toBe(before);
      }
  });

  it('AN-54 RI-20: a task of another owner or org does not exist, and only its own org cancels it', async () => {
    const task = await rpc(gateway, 'message/send', say('x', { configuration: { blocking: false } }), {
      agent: 'asleep',
    });
    const bob = await gateway.tokenOf('globex', 'bob');
    const carl = await gateway.tokenOf('default', 'carl');
    for (const [token, agent] of [
      [bob, 'asleep@default'],
      [carl, 'asleep'],
    ] as const)
      for (const method of ['tasks/get', 'tasks/cancel', 'tasks/resubscribe'])
        expect((await rpcError(gateway, method, { id: task.id }, { agent, token })).code).toBe(-32001);
    expect((await rpc(gateway, 'tasks/cancel', { id: task.id }, { agent: 'asleep' })).status.state).toBe('canceled');
  });

  it('RI-03 RI-08 RI-10 RI-15: one card, two doors, closed without a credential; no opt-in, no card', async () => {
    const { body: card } = await gateway.call('GET', '/a2a/kofi@default/agent.json', undefined, null);
    const bindings = card.supportedInterfaces.map((one: any) => one.protocolBinding);
    expect(bindings).toEqual(expect.arrayContaining(['JSONRPC', 'HTTP+JSON']));
    for (const path of ['/a2a/kofi', '/a2a/kofi%40default', '/a2a/agents/echo/'])
      expect((await rpcCall(gateway, 'tasks/send', say('x'), { agent: path })).body.result.status.state).toBe(
        'completed',
      );
    const rest = await gateway.call('POST', '/a2a/agents/echo/message:send', { message: userMessage('x') });
    expect([rest.status, rest.body.task.status.state]).toEqual([200, 'TASK_STATE_COMPLETED']);
    expect((await rpcCall(gateway, 'tasks/send', say('x'), { agent: '/a2a/kofi', token: null })).status).toBe(401);
    expect((await gateway.call('POST', '/a2a/agents/echo/message:send', {}, null)).status).toBe(401);
    expect((await rpcCall(gateway, 'tasks/send', say('x'), { agent: 'shy' })).status).toBe(404);
    expect((await gateway.call('GET', '/a2a/agents/shy/.well-known/agent-card.json')).status).toBe(404);
    expect((await gateway.call('POST', '/a2a/agents/shy/message:send', {})).status).toBe(404);
    await gateway.call('PATCH', '/api/a2a/published/shy', { a2a_enabled: true });
    expect((await rpcCall(gateway, 'tasks/send', say('x'), { agent: 'shy' })).status).toBe(200);
  });

  it('RI-16 RI-17 RI-26: tasks/send waits, returnImmediately does not, 1.0 names work on the same path', async () => {
    const waited = await rpc(gateway, 'tasks/send', say('x'), { agent: 'slow' });
    expect(waited).toMatchObject({ status: { state: 'completed' }, history: [{ role: 'user' }] });
    const soon = await rpc(gateway, 'tasks/send', say('x', { configuration: { returnImmediately: true } }), {
      agent: 'slow',
    });
    expect(soon.status.state).toBe('submitted');
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x') }, { agent: '/a2a/kofi' });
    expect(task.status.state).toBe('TASK_STATE_COMPLETED');
  });

  it('RI-21: a second subscriber gets the rest; an ended task is sent and the stream closes', async () => {
    const first = await rpcStream(gateway, 'tasks/sendSubscribe', say('a b c'), { agent: 'slower' });
    const { id } = (await first.next())!.data.result;
    const second = await (await rpcStream(gateway, 'tasks/subscribe', { id }, { agent: 'slower' })).rest();
    expect(second[0]!.data.result.kind).toBe('task');
    expect(second.at(-1)!.data.result.status.state).toBe('completed');
    first.close();
    const ended = await (await rpcStream(gateway, 'tasks/subscribe', { id }, { agent: 'slower' })).rest();
    expect(ended.map(({ data }) => [data.result.kind, data.result.status.state])).toEqual([['task', 'completed']]);
  });

  it('RI-22: the extended card needs a credential', async () => {
    for (const method of ['agent/authenticatedExtendedCard', 'GetExtendedAgentCard']) {
      expect((await rpcCall(gateway, method, undefined, { token: null })).status).toBe(401);
      expect((await rpc(gateway, method, undefined)).name).toBe('echo');
    }
  });

  it('RI-27 RI-28 RY-13: X-A2A-Timeout bounds the wait, not the work', async () => {
    const started = Date.now();
    const { body } = await rpcCall(gateway, 'message/send', say('x'), {
      agent: 'slower',
      headers: { 'X-A2A-Timeout': '1' },
    });
    expect(Date.now() - started).toBeGreaterThan(900);
    expect(body.result).toMatchObject({ status: { state: 'working' }, metadata: { partial: true } });
    for (const wrong of ['0', '301', 'abc', '1.5']) {
      const refused = await rpcCall(gateway, 'message/send', say('x'), {
        agent: 'slow',
        headers: { 'X-A2A-Timeout': wrong },
      });
      expect(refused.body.error.code).toBe(-32602);
    }
    const read = () => rpc(gateway, 'tasks/get', { id: body.result.id }, { agent: 'slower' });
    const done = await eventually(read, ({ status }) => status.state === 'completed');
    expect(done.metadata).toBeUndefined();
  });

  it('RI-37: an end is final, even for a manual change in the database', async () => {
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x') });
    const again = `insert into a2a_task_events (task_id, seq, body, terminal, at) values ($1, 99, '{}', true, now())`;
    await expect(gateway.sql(again, [task.id])).rejects.toMatchObject({ constraint: 'uq_a2a_task_events_end' });
    expect((await rpcError(gateway, 'SendMessage', { message: userMessage('more', { taskId: task.id }) })).code).toBe(
      -32004,
    );
  });

  it('AN-04 RY-10 RY-44: features that the card does not declare are refused', async () => {
    const { body: card } = await gateway.call('GET', '/a2a/agents/still/.well-known/agent-card.json');
    expect(card.capabilities).toMatchObject({ streaming: false, pushNotifications: false });
    expect((await rpcError(gateway, 'message/stream', say('x'), { agent: 'still' })).code).toBe(-32004);
    const push = { ...say('x'), configuration: { pushNotificationConfig: { url: 'http://127.0.0.1:9/' } } };
    expect((await rpcError(gateway, 'message/send', push, { agent: 'still' })).code).toBe(-32003);
    expect((await rpcError(gateway, 'tasks/pushNotificationConfig/list', { id: 'x' }, { agent: 'still' })).code).toBe(
      -32003,
    );
  });

  it('RY-43: an agent that accepts only text refuses other parts', async () => {
    const parts = [{ kind: 'data', data: { a: 1 } }];
    const message = { kind: 'message', messageId: 'm', role: 'user', parts };
    expect((await rpcError(gateway, 'message/send', { message }, { agent: 'writer' })).code).toBe(-32005);
    expect((await rpc(gateway, 'message/send', say('x'), { agent: 'writer' })).status.state).toBe('completed');
  });

  it('RY-04 RY-38 RY-39: a context is made, returned and separate; a lasting history has one per caller', async () => {
    const one = await rpc(gateway, 'message/send', say('x'));
    const other = await rpc(gateway, 'message/send', say('y'));
    expect(one.contextId).not.toBe(other.contextId);
    const next = await rpc(gateway, 'message/send', { message: { ...say('z').message, contextId: one.contextId } });
    expect(next.contextId).toBe(one.contextId);
    const { tasks } = await rpc(gateway, 'ListTasks', { contextId: one.contextId });
    expect(tasks.map((task: any) => task.id)).toEqual([next.id, one.id]);
    const bob = await gateway.tokenOf('default', 'bob');
    const lasting = (token?: string) => rpc(gateway, 'message/send', say('x'), { agent: 'lasting', token });
    const [a, b, c] = [await lasting(), await lasting(), await lasting(bob)];
    expect(a.contextId).toBe(b.contextId);
    expect(c.contextId).not.toBe(a.contextId);
  });

  it('AN-80: an asynchronous task is a row before its answer is sent', async () => {
    const sent = await Promise.all(
      Array.from({ length: 20 }, () => rpc(gateway, 'message/send', say('x', { async: true }))),
    );
    const rows = await gateway.sql('select id from a2a_tasks where id = any($1)', [sent.map(({ id }) => id)]);
    expect(rows).toHaveLength(20);
  });

  it('answers the same over REST, with HTTP statuses', async () => {
    const rest = (method: string, path: string, body?: unknown, headers = {}) =>
      gateway.call(method, `/a2a/agents/echo${path}`, body, undefined, headers);
    const { body } = await rest('POST', '/message:send', { message: userMessage('x') });
    const { id } = body.task;
    expect((await rest('GET', `/tasks/${id}?historyLength=0`)).body).not.toHaveProperty('history');
    expect((await rest('GET', '/tasks?pageSize=1')).body).toMatchObject({ pageSize: 1, tasks: [expect.anything()] });
    expect((await rest('GET', '/tasks/nobody')).status).toBe(404);
    const late = await rest('POST', `/tasks/${id}:cancel`);
    expect([late.status, late.body.error.status]).toEqual([400, 'FAILED_PRECONDITION']);
    expect(
      (await rest('POST', '/message:send', { message: { messageId: 'm', role: 'ROLE_USER', parts: [] } })).status,
    ).toBe(400);
    expect((await rest('GET', '/nowhere')).status).toBe(404);
    expect((await rest('GET', `/v1/tasks/${id}`)).body).toMatchObject({ status: { state: 'TASK_STATE_COMPLETED' } });
    const typed = await rest('GET', `/tasks/${id}`, undefined, { accept: 'application/a2a+json, application/json' });
    expect(typed.headers.get('content-type')).toBe('application/a2a+json');
    const refused = await rest('GET', `/tasks/${id}`, undefined, { 'A2A-Version': '2.0' });
    expect(refused.body.error.details[0].reason).toBe('VERSION_NOT_SUPPORTED');
    const stream = await openStream(`${gateway.url}/a2a/agents/echo/message:stream`, {
      token: gateway.token,
      body: { message: userMessage('x') },
    });
    expect((await stream.rest()).map(({ data }) => Object.keys(data)[0])).toEqual([
      'task',
      'statusUpdate',
      'artifactUpdate',
      'statusUpdate',
    ]);
  });
});

describe('tasks and restarts of processes', () => {
  it('AN-23 RI-42 RY-40: tasks exist after a restart of all processes, and running ones continue', async () => {
    const first = await startTestGateway();
    try {
      await publish(first);
      await publish(first, { name: 'slow', executor: { kind: 'echo', delayMs: 1_000, chunks: 4 } });
      const { task } = await rpc(first, 'SendMessage', { message: userMessage('kept') });
      const configuration = { returnImmediately: true };
      const { task: running } = await rpc(
        first,
        'SendMessage',
        { message: userMessage('a b c d'), configuration },
        { agent: 'slow' },
      );
      await first.gateway.close();
      const second = await startTestGateway({}, first);
      try {
        expect(await rpc(second, 'GetTask', { id: task.id }, { token: first.token })).toEqual(task);
        const read = () => rpc(second, 'GetTask', { id: running.id }, { agent: 'slow', token: first.token });
        const done = await eventually(read, ({ status }) => status.state === 'TASK_STATE_COMPLETED');
        expect(done.artifacts[0].parts.map((part: any) => part.text).join('')).toBe('a b c d');
      } finally {
        await second.close();
      }
    } finally {
      await first.close();
    }
  });

  it('AN-57: a task that waits or works too long fails with that reason', async () => {
    const gateway = await startTestGateway({
      RIALTO_ROLE: 'all',
      A2A_PROCESSING_LIFETIME_MAX_MS: '1000',
      A2A_QUEUED_LIFETIME_MAX_MS: '60000',
    });
    try {
      await publish(gateway, { name: 'asleep', executor: { kind: 'echo', delayMs: 600_000 } });
      const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x') }, { agent: 'asleep' });
      expect(task.status).toMatchObject({
        state: 'TASK_STATE_FAILED',
        message: { parts: [{ text: expect.stringContaining('1 seconds') }] },
      });
    } finally {
      await gateway.close();
    }
  });

  it('drops ended tasks after their retention, with their logs, and nothing else', async () => {
    const gateway = await startTestGateway({ RIALTO_TASK_RETENTION_DAYS: '1' });
    try {
      await publish(gateway);
      const recentId = (await rpc(gateway, 'SendMessage', { message: userMessage('new') })).task.id;
      const old = '01900000-0000-7000-8000-000000000001';
      const open = '01900000-0000-7000-8000-000000000002';
      // One statement, because the gateway's own sweep may run between two.
      await gateway.sql(
        `with tasks as (
           insert into a2a_tasks (id, org_id, agent_id, agent_name, context_id, owner, principal, status_state,
             status_timestamp, history, artifacts, seq, folded_seq, updated_at)
           select made.id, org_id, agent_id, agent_name, 'c', owner, principal, made.state,
             now() - interval '3 days', '[]', '[]', 1, 1, now() - interval '3 days'
           from a2a_tasks, (values ($2::uuid, 'completed'), ($3::uuid, 'input-required')) as made (id, state)
           where a2a_tasks.id = $1)
         insert into a2a_task_events (task_id, seq, body, at) values ($2, 1, '{}', now())`,
        [recentId, old, open],
      );
      const { TaskRetentionSweeper } = await import('../../../src/tasks/run/task-retention.sweeper.js');
      await gateway.gateway.get(TaskRetentionSweeper).sweep();
      expect((await gateway.sql('select id from a2a_tasks order by id')).map(({ id }) => id)).toEqual([open, recentId]);
      expect(await gateway.sql('select task_id from a2a_task_events where task_id = $1', [old])).toEqual([]);
    } finally {
      await gateway.close();
    }
  });
});
