import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { readEvents } from '../../support/gateway/event-rows.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import {
  askAgain,
  closeRemotes,
  continuationOf,
  quick,
  startRemote,
  type Remote,
} from '../../support/clients/remote-work.js';
import { asyncTask, data, never, sequence, stream } from '../../support/stubs/stub-behaviours.js';
import type { Behaviour } from '../../support/stubs/stub-call.js';
import { resetAtOnce } from '../../support/stubs/stub-hostile.js';

describe('remote agents with answers that the database cannot store', () => {
  let gateway: TestGateway;
  let names = 0;
  beforeAll(async () => {
    gateway = await startTestGateway(quick);
  });
  afterAll(async () => {
    await gateway.close();
    await closeRemotes();
  });

  const sends = ({ agent }: Remote) => agent.requests.filter(({ operation }) => operation === 'send').length;
  const row = async (id: string) => {
    const [task] = await gateway.sql('select status_state as state, crashes from a2a_tasks where id = $1', [id]);
    return { ...task, said: (await readEvents(gateway.sql, id)).at(-1).statusUpdate?.status.message };
  };
  const ended = (id: string) =>
    eventually(
      () => row(id),
      ({ state }) => state !== 'working' && state !== 'submitted',
    );

  /** Creates a task of a published agent that a remote agent executes. */
  const working = async (behaviour: Behaviour, onGet?: Behaviour): Promise<{ one: Remote; id: string }> => {
    const one = await startRemote(gateway, behaviour, { capabilities: { streaming: false } });
    if (onGet) one.agent.set(onGet, 'get');
    const name = `ours-${one.slug.replace('_', '-')}`;
    await publish(gateway, { name, executor: { kind: 'remote', agentId: one.slug } });
    const configuration = { returnImmediately: true };
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x'), configuration }, { agent: name });
    return { one, id: task.id };
  };
  it('(C04) after an unreadable event, a read of the task shows its result', async () => {
    const { agent, slug } = await startRemote(
      gateway,
      stream([{ task: 'working' }, { raw: 'data: 2026-01-01 10:00\n\n' }]),
      { capabilities: { streaming: true } },
    );
    agent.set((it) => it.settle({ state: 'completed', artifacts: [[{ text: 'done' }]] }), 'get');
    await publish(gateway, { name: 'unread', executor: { kind: 'remote', agentId: slug } });
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x') }, { agent: 'unread' });
    expect(task).toMatchObject({
      status: { state: 'TASK_STATE_COMPLETED' },
      artifacts: [{ parts: [{ text: 'done' }] }],
    });
    expect(agent.requests.map(({ operation }) => operation)).toEqual(expect.arrayContaining(['stream', 'get']));
  });

  it('(K4) accepts the media types of its remote agent, and reports the code of a refusal', async () => {
    const { agent, slug } = await startRemote(gateway, (it) => it.error(-32_005, 'no such type'));
    await publish(gateway, { name: 'taking', executor: { kind: 'remote', agentId: slug } });
    const odd = [{ url: 'https://x.example/a', mediaType: 'application/x-odd' }];
    const send = (parts: unknown[]) =>
      gateway.call('POST', '/a2a/agents/taking', {
        jsonrpc: '2.0',
        id: 1,
        method: 'SendMessage',
        params: { message: { messageId: 'm', role: 'ROLE_USER', parts } },
      });
    expect((await send(odd)).body.error.code).toBe(-32_005);
    expect(agent.requests.filter(({ operation }) => operation === 'send')).toHaveLength(0);
    const { body } = await gateway.call('GET', '/a2a/agents/taking/.well-known/agent-card.json');
    expect(body.defaultInputModes).toEqual(expect.arrayContaining(['application/json', 'text/plain']));
    expect(body.defaultInputModes).not.toContain('*/*');
    const { status } = (await send([{ text: 'x' }])).body.result.task;
    expect([status.state, status.message.metadata]).toEqual([
      'TASK_STATE_FAILED',
      { errorCode: 'remote_error', remoteCode: -32_005 },
    ]);
  });

  it('(K12) a message is forwarded with its extensions and the remote ids of the tasks that it names', async () => {
    const { agent, slug } = await startRemote(
      gateway,
      (it) => it.settle({ state: 'completed', artifacts: [[{ text: 'a' }]] }),
      {
        card: 'v1',
      },
    );
    await publish(gateway, { name: 'referring', executor: { kind: 'remote', agentId: slug } });
    const send = async (more: Record<string, unknown>): Promise<{ id: string }> =>
      (await rpc(gateway, 'SendMessage', { message: userMessage('x', more) }, { agent: 'referring' })).task;
    const first = await send({});
    await send({ extensions: ['urn:x:e'], referenceTaskIds: [first.id] });
    const [, second] = agent.requests.filter(({ operation }) => operation === 'send' || operation === 'stream');
    const { message } = (second!.json as { params: { message: Record<string, unknown> } }).params;
    expect(message).toMatchObject({ extensions: ['urn:x:e'], referenceTaskIds: ['stub-task-1'] });
  });

  it('(N11) a rejected task is failed for callers with methods that have no rejection', async () => {
    const { slug } = await startRemote(gateway, (it) =>
      it.settle({ state: 'rejected', statusParts: [{ text: 'no' }] }),
    );
    await publish(gateway, { name: 'rejecting', executor: { kind: 'remote', agentId: slug } });
    const message = { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'x' }] };
    const state = async (method: string) => (await rpc(gateway, method, { message }, { agent: 'rejecting' })).status;
    expect(await state('tasks/send')).toMatchObject({
      state: 'failed',
      message: { parts: [{ text: expect.stringContaining('no') }] },
    });
    expect((await state('message/send')).state).toBe('rejected');
  });

  describe('(R3) a message with an unknown outcome', () => {
    const sentIds = ({ agent }: Remote): unknown[] =>
      agent.requests
        .filter(({ operation }) => operation === 'send')
        .map(({ json }) => (json as { params: { message: { messageId: string } } }).params.message.messageId);
    const begin = async (name: string, behaviour: Behaviour, card: 'v1' | 'v03', onList?: Behaviour) => {
      const one = await startRemote(gateway, behaviour, { card, capabilities: { streaming: false } });
      one.agent.set(onList ?? ((it) => it.error(-32_601, 'no lists')), 'list');
      await publish(gateway, { name, executor: { kind: 'remote', agentId: one.slug } });
      const send = async () =>
        (await rpc(gateway, 'SendMessage', { message: userMessage('x'), idempotencyKey: 'once' }, { agent: name }))
          .task;
      return { one, send };
    };

    it('is sent once more with the same id', async () => {
      const twice = sequence(resetAtOnce, (it) => it.settle({ state: 'completed', artifacts: [[{ text: 'done' }]] }));
      const { one, send } = await begin('again', twice, 'v03');
      expect((await send()).status.state).toBe('TASK_STATE_COMPLETED');
      const [first, second, ...more] = sentIds(one);
      expect([second, more]).toEqual([first, []]);
      expect(new Set(one.agent.requests.map(({ headers }) => headers['idempotency-key']))).toContain(first);
    });

    it('is not sent again when its task is found', async () => {
      const messages: string[] = [];
      const { one, send } = await begin(
        'found',
        (it) => {
          messages.push((it.route.params.message as { messageId: string }).messageId);
          return resetAtOnce(it);
        },
        'v1',
        (it) =>
          it.result({
            tasks: [
              {
                id: 'theirs',
                contextId: 'c',
                status: { state: 'TASK_STATE_WORKING' },
                history: [{ messageId: messages[0], role: 'ROLE_USER', parts: [{ text: 'x' }] }],
              },
            ],
            nextPageToken: '',
          }),
      );
      one.agent.set(
        (it) =>
          it.result({
            id: 'theirs',
            contextId: 'c',
            status: { state: 'TASK_STATE_COMPLETED' },
            artifacts: [{ artifactId: 'a', parts: [{ text: 'found' }] }],
          }),
        'get',
      );
      expect(await send()).toMatchObject({
        status: { state: 'TASK_STATE_COMPLETED' },
        artifacts: [{ parts: [{ text: 'found' }] }],
      });
      expect(sentIds(one)).toHaveLength(1);
    });

    it('fails with its own code, and keeps its idempotency key', async () => {
      const { one, send } = await begin('unknown', resetAtOnce, 'v03');
      const failed = await send();
      expect([failed.status.state, failed.status.message.metadata]).toEqual([
        'TASK_STATE_FAILED',
        { errorCode: 'outcome_unknown', ambiguous: true },
      ]);
      expect(failed.status.message.parts[0].text).toContain(one.slug);
      expect(new Set(sentIds(one)).size).toBe(1);
      expect((await send()).id).toBe(failed.id);
      expect(sentIds(one)).toHaveLength(2);
    });

    it('is reported as unreachable when it cannot have arrived, and its key is free', async () => {
      const { one, send } = await begin('down', never, 'v03');
      await one.agent.down();
      const failed = await send();
      expect(failed.status.message.metadata.errorCode).toBe('remote_transport');
      expect(failed.status.message.parts[0].text).toContain('could not be reached');
      expect((await send()).id).not.toBe(failed.id);
    });
  });

  const answering =
    (task: { id: string; contextId: string }): Behaviour =>
    (it) =>
      it.result({ kind: 'task', status: { state: 'working' }, ...task });

  const listening = async (): Promise<string> => {
    const name = `listening-${(names += 1)}`;
    await publish(gateway, { name });
    return name;
  };

  const unsound: [string, { id: string; contextId: string }][] = [
    ['a task id with a NUL', { id: 'a\u0000b', contextId: 'c' }],
    ['a task id with half a surrogate pair', { id: '\ud800', contextId: 'c' }],
    ['a task id of 9 KB', { id: 'x'.repeat(9_000), contextId: 'c' }],
    ['a context id of 300 KB', { id: 'a', contextId: 'c'.repeat(300_000) }],
  ];

  it.each(unsound)('%s is an invalid answer: the message is not sent again', async (_, task) => {
    const { one, id } = await working(answering(task));
    expect(await ended(id)).toMatchObject({
      state: 'failed',
      crashes: 0,
      said: { metadata: { errorCode: 'remote_invalid_response' } },
    });
    expect(sends(one)).toBe(1);
  });

  it.each(unsound)('%s is an invalid answer for a bridged call too, and does not suggest a retry', async (_, task) => {
    const one = await startRemote(gateway, answering(task));
    const { status, body } = await gateway.call('POST', '/api/a2a/invoke', { agentCardId: one.slug, skillId: 'work' });
    expect([status, body.code]).toEqual([502, 'remote_invalid_response']);
  });

  it('its text is stored, with U+FFFD in place of invalid characters', async () => {
    const said = {
      kind: 'message',
      role: 'agent',
      messageId: 'm',
      parts: [{ kind: 'text', text: 'a\u0000b \ud800 x' }],
    };
    const artifact = { artifactId: 'z\u0000', parts: [{ kind: 'data', data: { '\udc00': ['\u0000', '😀'] } }] };
    const { id } = await working(never, (it) =>
      it.result({ ...it.encodedTask(), status: { state: 'completed', message: said }, artifacts: [artifact] }),
    );
    expect(await ended(id)).toMatchObject({
      state: 'completed',
      crashes: 0,
      said: { parts: [{ text: 'a\ufffdb \ufffd x' }] },
    });
    const { body } = await gateway.call('GET', `/api/a2a/tasks/${id}`);
    expect(body.task.artifacts[0].parts).toEqual([{ data: { '\ufffd': ['\ufffd', '😀'] } }]);
    const bridged = await startRemote(gateway, asyncTask(30, data({ a: 'b\u0000' })));
    expect((await askAgain(gateway, (await bridged.handed()).taskId)).result.structuredContent).toEqual({
      a: 'b\ufffd',
    });
  });

  it.each(['', 'x'])(
    'a long error with characters outside the first plane is cut between characters (%j)',
    async (before) => {
      const { id } = await working(never, (it) => it.error(-32_005, before + '😀'.repeat(700)));
      const { state, said, crashes } = await ended(id);
      expect([state, crashes, said.metadata.errorCode]).toEqual(['failed', 0, 'remote_error']);
      expect((await continuationOf(gateway, id)).status).toBe('failed');
    },
  );

  it.each(['a\u0000b', '\ud800'])(
    'a task that continues is stored with arguments that no row can hold: %j',
    async (word) => {
      const { agent, slug } = await startRemote(gateway, never);
      const { result } = await gateway.rpc('tools/call', { name: `${slug}.work`, arguments: { word } });
      const { taskId, state } = result.structuredContent;
      expect(state).toBe('working');
      expect(JSON.stringify(agent.requests[0]!.json)).toContain(JSON.stringify({ word }));
      const [opened] = await readEvents(gateway.sql, taskId);
      expect(opened.task.history[0].parts).toEqual([{ data: { word: word === '\ud800' ? '\ufffd' : 'a\ufffdb' } }]);
    },
  );

  it.each([
    { message: 'a\u0000' },
    { message: 'x', data: { word: '\ud800' } },
    { message: 'x', contextId: '\u0000' },
    { message: 'x', contextId: 'c'.repeat(257) },
  ])('a message of a model that no row can hold is refused: %#', async (words) => {
    const { error } = await gateway.rpc('tools/call', {
      name: 'send_to_agent',
      arguments: { agent: await listening(), ...words },
    });
    expect(error).toMatchObject({ code: -32_602, data: { code: 'invalid_params' } });
  });

  it('another storage error fails the task at once', async () => {
    const { one, id } = await working(never);
    await gateway.sql(`create function refuse() returns trigger language plpgsql as
      $$ begin raise exception 'no' using errcode = '22P02'; end $$`);
    await gateway.sql(`create trigger refuse before insert on a2a_task_events for each row
      when (new.task_id = '${id}' and new.body::text like '%artifactUpdate%') execute function refuse()`);
    one.agent.set(data({ n: 1 }), 'get');
    const { said, ...end } = await ended(id).finally(() => gateway.sql('drop function refuse cascade'));
    expect(end).toEqual({ state: 'failed', crashes: 0 });
    expect(said.metadata.errorCode).toBe('internal');
    expect(sends(one)).toBe(1);
    expect(await one.agent.waitForCancels()).toEqual(['stub-task-1']);
  });
});
