import { createHmac } from 'node:crypto';
import { openStream, publish, rpc, rpcCall, rpcStream, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, testSecret, type TestGateway } from '../../support/gateway/gateway.js';

const native = '/_agent-native/a2a';

describe('older callers', () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startTestGateway();
    await publish(gateway);
    await publish(gateway, { name: 'asks', executor: { kind: 'echo', ask: 'Which colour?' } });
    await publish(gateway, { name: 'asleep', executor: { kind: 'echo', delayMs: 600_000 } });
    await publish(gateway, { name: 'slow', executor: { kind: 'echo', delayMs: 500, chunks: 2 } });
    await gateway.call('PATCH', '/api/orgs/default', { defaultAgent: 'echo' });
  });

  afterAll(() => gateway.close());

  const say = (text: string, more: object = {}) => ({
    message: { role: 'user', parts: [{ type: 'text', text }] },
    ...more,
  });
  const run = (path: string, method = 'GET', token?: string | null) =>
    gateway.call(method, `/a2a/tasks/${path}`, undefined, token);

  it.each([native, '/a2a', `${native}/`])(
    'AN-09 AN-11 RY-12: message/send to %s waits for the reply',
    async (agent) => {
      const task = await rpc(gateway, 'message/send', say('hello', { contextId: 'c-1' }), { agent });
      expect(task).toMatchObject({
        kind: 'task',
        contextId: 'c-1',
        status: {
          state: 'completed',
          message: { kind: 'message', role: 'agent', parts: [{ kind: 'text', text: 'hello' }] },
        },
      });
    },
  );

  it('AN-12: async answers working at once, and the task completes', async () => {
    const task = await rpc(gateway, 'message/send', say('later', { async: true }), { agent: native });
    expect(task.status.state).toBe('working');
    const read = () => rpc(gateway, 'tasks/get', { id: task.id }, { agent: native });
    await eventually(read, ({ status }) => status.state === 'completed');
  });

  it('AN-18 AN-19 RY-43: text, data and files by bytes and by uri are returned unchanged', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index)).toString('base64');
    const parts = [
      { type: 'text', text: 'see' },
      { type: 'data', data: { a: [1, null, { b: 'ü' }] } },
      { type: 'file', file: { name: 'x.bin', mimeType: 'application/octet-stream', bytes } },
      { type: 'file', file: { name: 'y.png', mimeType: 'image/png', uri: 'https://example.com/y.png' } },
    ];
    const task = await rpc(gateway, 'message/send', { message: { role: 'user', parts } }, { agent: native });
    const expectedParts = parts.map(({ type, ...part }) => ({ kind: type, ...part }));
    expect(task.artifacts[0].parts).toEqual(expectedParts);
    expect(task.history[0].parts).toEqual(expectedParts);
  });

  it('AN-49: each refusal has its own status and code', async () => {
    for (const [token, message] of [
      [null, 'Authentication required'],
      ['not-a-key', 'Invalid API key'],
      ['a.b.c', 'Invalid or expired A2A token'],
    ] as const) {
      const { status, body, headers } = await rpcCall(gateway, 'message/send', say('x'), { agent: native, token });
      expect([status, body.error.code, body.error.message]).toEqual([401, -32001, message]);
      expect(headers.get('www-authenticate')).toMatch(/^Bearer/);
      const usual = await rpcCall(gateway, 'message/send', say('x'), { token });
      expect([usual.status, usual.body.error.code]).toEqual([401, -32000]);
    }
  });

  it('AN-51 RY-05: an invalid request, an unknown method and an invalid message have their codes', async () => {
    const post = async (body: unknown, path = native) => {
      const answer = await gateway.call('POST', path, body);
      return [answer.status, answer.body.error.code];
    };
    expect(await post('{')).toEqual([400, -32700]);
    expect(await post({ id: 1, method: 'message/send' })).toEqual([400, -32600]);
    expect(await post([])).toEqual([400, -32600]);
    expect(await post('{', '/a2a/agents/echo')).toEqual([200, -32700]);
    expect(await post({ jsonrpc: '2.0', id: 1, method: 'nope' })).toEqual([200, -32601]);
    expect(await post({ jsonrpc: '2.0', id: 1, method: '__proto__' })).toEqual([200, -32601]);
    expect(await post({ jsonrpc: '2.0', id: 1, method: 'message/send', params: {} })).toEqual([200, -32602]);
    expect(
      await post({ jsonrpc: '2.0', id: 1, method: 'message/send', params: say('x') }, '/a2a/agents/nobody'),
    ).toEqual([404, -32602]);
  });

  it.each(['message/stream', 'tasks/resubscribe', 'tasks/sendSubscribe', 'tasks/subscribe'])(
    '(K3) an error of %s before its first event is an event of a stream, for clients that read only streams',
    async (method) => {
      const ask = async (accept: string, params: object) => {
        const answer = await fetch(`${gateway.url}/a2a/agents/echo`, {
          method: 'POST',
          headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json', accept },
          body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }),
        });
        return { status: answer.status, type: answer.headers.get('content-type'), text: await answer.text() };
      };
      const about = { id: 'nope', message: { ...say('x').message, taskId: 'nope' } };
      for (const [params, code] of [
        [about, -32001],
        [{}, -32602],
      ] as const) {
        const { status, type, text } = await ask('text/event-stream', params);
        expect([status, type]).toEqual([200, 'text/event-stream']);
        const [, data] = /^event: error\ndata: (.*)\n\n$/.exec(text)!;
        expect(JSON.parse(data!)).toMatchObject({ jsonrpc: '2.0', id: 7, error: { code } });
      }
      expect(await ask('application/json', about)).toMatchObject({ status: 200, type: 'application/json' });
    },
  );

  it('(N14) AN-55: credentials and identities in metadata are neither stored nor returned', async () => {
    const secrets = {
      googleToken: 'canary-1',
      userEmail: 'canary-2',
      orgDomain: 'canary-3',
      accessToken: 'canary-4',
      refreshToken: 'canary-5',
      apiKey: 'canary-6',
      Authorization: 'canary-7',
      bearer: 'canary-8',
    };
    const message = {
      ...say('x').message,
      metadata: { ...secrets, colour: 'red', nested: [{ deep: { ...secrets, size: 1 } }] },
    };
    const task = await rpc(
      gateway,
      'message/send',
      { message, metadata: { ...secrets, shape: 'round', nested: secrets } },
      { agent: native },
    );
    const seen = await rpc(gateway, 'tasks/get', { id: task.id }, { agent: native });
    expect(JSON.stringify([task, seen])).not.toContain('canary');
    expect([seen.metadata, seen.history[0].metadata]).toEqual([
      { shape: 'round', nested: {} },
      { colour: 'red', nested: [{ deep: { size: 1 } }] },
    ]);
    const rows = await gateway.sql(
      `select t::text, (select json_agg(e)::text from a2a_task_events e where task_id = t.id) as e
       from a2a_tasks t
       where id = $1`,
      [task.id],
    );
    expect(JSON.stringify(rows)).not.toContain('canary');
  });

  describe('the run view', () => {
    it('RY-14 RY-16 RY-17 RY-18: async_mode answers the envelope; a poll returns it flat and complete', async () => {
      const envelope = await rpc(gateway, 'message/send', say('hello', { async_mode: true }));
      expect(envelope).toMatchObject({ kind: 'task', id: expect.any(String), agent_name: 'echo', run_id: envelope.id });
      // (N12) the status of the run, and the Task beside it
      expect(envelope).toMatchObject({ status: 'running', task: { kind: 'task', id: envelope.id } });
      expect(envelope.task.status.state).toMatch(/submitted|working/);
      const read = async () => (await run(envelope.id)).body;
      const view = await eventually(read, ({ status }) => status === 'completed');
      expect(view).toMatchObject({
        run_id: envelope.id,
        status: 'completed',
        question: null,
        result: 'hello',
        error: null,
        agent_name: 'echo',
        task: { kind: 'task', id: envelope.id, status: { state: 'completed' } },
      });
    });

    it('RY-19: an unknown run, and one of another org, is 404; without a credential 401', async () => {
      const { id } = await rpc(gateway, 'message/send', say('x'));
      const mallory = await gateway.tokenOf('globex', 'mallory', 'admin');
      for (const path of ['', '/events']) {
        expect((await run(`nobody${path}`)).status).toBe(404);
        expect((await run(`${id}${path}`, 'GET', mallory)).status).toBe(404);
        expect((await run(`${id}${path}`, 'GET', null)).status).toBe(401);
      }
      expect((await run(`${id}/cancel`, 'POST', mallory)).status).toBe(404);
      expect((await run(`${id}/cancel`)).status).toBe(405);
    });

    it('RY-20 RY-21 RY-22: a second cancel changes nothing, and a canceled run never completes', async () => {
      const { id } = await rpc(gateway, 'message/send', say('x', { async_mode: true }), { agent: 'asleep' });
      await eventually(
        async () => (await run(id)).body.task.status.state,
        (state) => state === 'working',
      );
      const first = await run(`${id}/cancel`, 'POST');
      const second = await run(`${id}/cancel`, 'POST');
      expect([first.status, first.body.status, second.status, second.body.status]).toEqual([
        200,
        'cancelled',
        200,
        'cancelled',
      ]);
      const ends = await gateway.sql('select body from a2a_task_events where task_id = $1 and terminal', [id]);
      expect(ends).toHaveLength(1);
      const done = await rpc(gateway, 'message/send', say('x'));
      expect((await run(`${done.id}/cancel`, 'POST')).body.status).toBe('completed');
    });

    it('RY-26 RY-27 RY-28 RY-29 RY-30: a question is shown, and its answer is accepted once', async () => {
      const asked = await rpc(gateway, 'message/send', say('paint', { async_mode: true }), { agent: 'asks' });
      const view = await eventually(
        async () => (await run(asked.id)).body,
        ({ status }) => status === 'input-required',
      );
      expect(view.question).toBe('Which colour?');
      const answer = await rpc(gateway, 'message/send', say('red', { task_id: asked.id, choice_id: 'r' }), {
        agent: 'asks',
      });
      expect(answer).toMatchObject({ task_id: asked.id, answered: true });
      const done = await eventually(
        async () => (await run(asked.id)).body,
        ({ status }) => status === 'completed',
      );
      expect(done.result).toBe('red');
      expect(done.task.history.at(-1).metadata).toEqual({ choice_id: 'r' });
      const late = await rpc(gateway, 'message/send', say('blue', { task_id: asked.id }), { agent: 'asks' });
      expect(late).toMatchObject({ task_id: asked.id, answered: false, reason: expect.stringContaining('completed') });
    });

    it('RY-23 RY-24: events are replayed, then followed, and the stream ends with the run', async () => {
      const { id } = await rpc(gateway, 'message/send', say('one two', { async_mode: true }), { agent: 'slow' });
      const url = `${gateway.url}/a2a/tasks/${id}/events`;
      const live = await (await openStream(url, { token: gateway.token, method: 'GET' })).rest();
      const late = await (await openStream(url, { token: gateway.token, method: 'GET' })).rest();
      expect(live).toEqual(late);
      expect(live.map(({ data, event }) => event ?? data.status)).toEqual(['running', 'running', 'completed', 'end']);
      expect(live.slice(0, -1).map(({ data }) => data.progress)).toEqual([1, 2, 5]);
      const resumed = await openStream(url, { token: gateway.token, method: 'GET', headers: { 'Last-Event-ID': '2' } });
      expect((await resumed.rest()).map((frame) => frame.id)).toEqual([5, undefined]);
      for (const wrong of ['-1', '2.5', 'x', '1e3']) {
        const refused = await fetch(url, {
          headers: { authorization: `Bearer ${gateway.token}`, 'Last-Event-ID': wrong },
        });
        const { violations } = (await refused.json()) as { violations: { field: string }[] };
        expect([refused.status, violations[0]!.field]).toEqual([400, 'Last-Event-ID']);
      }
    });
  });

  describe('the internal processor', () => {
    const sign = (id: string, at = Date.now()) =>
      `${at}.${createHmac('sha256', testSecret).update(`${id}:${at}`).digest('hex')}`;
    const wake = (body: unknown, token?: string, method = 'POST') =>
      gateway.call(method, `${native}/_process-task`, body, token ?? null);

    it('AN-10 AN-16 AN-52: accepts only the token of that task', async () => {
      const { id } = await rpc(gateway, 'message/send', say('x'), { agent: native });
      expect((await wake(undefined, sign(id), 'GET')).status).toBe(405);
      expect((await wake({}, sign(id))).status).toBe(400);
      expect((await wake({ taskId: id })).status).toBe(401);
      expect((await wake({ taskId: id }, sign('another'))).status).toBe(401);
      expect((await wake({ taskId: id }, sign(id, Date.now() - 360_000))).status).toBe(401);
      const { status, body } = await wake({ taskId: id }, sign(id));
      expect([status, body]).toEqual([200, { ok: true, taskId: id, woken: false }]);
    });

    it('AN-15 AN-56: a task with a lost job is still processed', async () => {
      const id = '01900000-0000-7000-8000-00000000abcd';
      await gateway.tokenOf('default', 'lost');
      const [echo] = await gateway.sql(`select id, org_id from published_agents where name = 'echo'`);
      const history = [{ messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'lost' }], taskId: id, contextId: 'c' }];
      await gateway.sql(
        `insert into a2a_tasks (id, org_id, agent_id, agent_name, context_id, owner, principal, status_state,
           status_timestamp, history, artifacts, seq, folded_seq, next_at)
         values ($1, $2, $3, 'echo', 'c', 'user:lost', '{"kind":"user","id":"lost","role":"member","groups":[]}',
           'submitted', now(), $4, '[]', 1, 1, now())`,
        [id, echo.org_id, echo.id, JSON.stringify(history)],
      );
      await wake({ taskId: id }, sign(id));
      const read = () => gateway.sql('select status_state from a2a_tasks where id = $1', [id]);
      await eventually(read, ([row]) => row.status_state === 'completed');
    });
  });
});

describe('agents by MCP', () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startTestGateway();
  });

  afterAll(() => gateway.close());

  const call = async (name: string, args: object = {}) =>
    (await gateway.rpc('tools/call', { name, arguments: args })).result;

  it('are not listed as tools while there are none', async () => {
    expect((await gateway.rpc('tools/list')).result.tools).toEqual([]);
  });

  it('RY-11: list_agents and send_to_agent share tasks, history and policy with the A2A door', async () => {
    await publish(gateway, { name: 'asks', executor: { kind: 'echo', ask: 'Which colour?' } });
    await publish(gateway, { name: 'hidden', a2a_enabled: false });
    const tools = (await gateway.rpc('tools/list')).result.tools.map((tool: any) => tool.name);
    expect(tools).toEqual(['list_agents', 'send_to_agent']);
    expect((await call('list_agents')).structuredContent.agents.map((agent: any) => agent.name)).toEqual(['asks']);
    const asked = await call('send_to_agent', { agent: 'asks', message: 'paint' });
    expect(asked.structuredContent).toMatchObject({ state: 'input-required', text: 'Which colour?' });
    const { taskId, contextId } = asked.structuredContent;
    const { task } = await rpc(
      gateway,
      'SendMessage',
      { message: userMessage('red', { taskId, contextId }) },
      { agent: 'asks' },
    );
    expect(task.history.map((one: any) => one.parts[0].text)).toEqual(['paint', 'Which colour?', 'red']);
    const more = await call('send_to_agent', { agent: 'asks', message: 'blue', taskId });
    expect(more).toBeUndefined();
    await gateway.call('POST', '/api/policies', {
      name: 'nobody',
      text: 'forbid(principal, action == Action::"task_submit", resource == PublishedAgent::"asks");',
    });
    const denied = async () =>
      (await gateway.rpc('tools/call', { name: 'send_to_agent', arguments: { agent: 'asks', message: 'x' } })).error
        ?.code;
    await eventually(denied, (code) => code === -32003);
    const { status } = await rpcCall(gateway, 'SendMessage', { message: userMessage('x') }, { agent: 'asks' });
    expect(status).toBe(403);
    expect((await gateway.rpc('tools/list')).result.tools).toEqual([]);
  });

  it('a stream by A2A has only the events of its own message', async () => {
    await publish(gateway, { name: 'plain' });
    const stream = await rpcStream(
      gateway,
      'message/stream',
      { message: { kind: 'message', messageId: 'x', role: 'user', parts: [{ kind: 'text', text: 'hi' }] } },
      { agent: 'plain' },
    );
    const frames = await stream.rest();
    expect(frames.map(({ data }) => data.result.kind)).toEqual([
      'task',
      'status-update',
      'artifact-update',
      'status-update',
    ]);
    expect(frames.at(-1)!.data.result.final).toBe(true);
  });
});
