import { publish, rpc, rpcError, rpcStream, userMessage, type Frame } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startFixture } from '../../support/clients/mcp-fixture.js';
import { Refusal, TestUpstream, type UpstreamKind } from '../../support/stubs/upstream.js';

const text = (words: string) => ({ content: [{ type: 'text', text: words }] });
const never = () => new Promise(() => undefined);
const schemaOf = (...required: string[]) => ({
  inputSchema: {
    type: 'object',
    properties: Object.fromEntries(required.map((name) => [name, { type: 'string' }])),
    required,
  },
});

describe('an agent with a tool of an MCP server as executor', () => {
  let gateway: TestGateway;
  let upstream: TestUpstream;
  beforeAll(async () => {
    gateway = await startTestGateway();
    upstream = await TestUpstream.start();
    upstream.add('shout', ({ word }) => text(String(word).toUpperCase()), {
      title: 'Shout',
      description: 'Says it louder.',
      ...schemaOf('word'),
    });
    upstream.add('send', () => text('sent'), schemaOf('to', 'subject'));
    upstream.add('fails', () => ({ ...text('no paper left'), isError: true }));
    upstream.add('refuses', () => {
      throw new Refusal(-32_000, 'not on Sundays');
    });
    upstream.add('never', never);
    await register(upstream, 'office');
    await publish(gateway, { name: 'office', executor: { kind: 'mcp-tool', serverId: 'office' } });
    await publish(gateway, { name: 'shouter', executor: { kind: 'mcp-tool', serverId: 'office', tool: 'shout' } });
  });
  afterAll(async () => {
    await upstream.close();
    await gateway.close();
  });

  const register = async ({ url }: { url: string }, id: string, more: object = {}, token?: string) => {
    const { status, body } = await gateway.call('POST', '/api/mcp/servers', { id, url, ...more }, token);
    expect([status, body]).toEqual([201, expect.anything()]);
  };
  const send = async (agent: string, message: object, token?: string) =>
    (await rpc(gateway, 'SendMessage', { message }, { agent, token })).task;
  const data = (value: object, skillId?: string, more: object = {}) =>
    userMessage('', { parts: [{ data: value }], ...(skillId !== undefined && { metadata: { skillId } }), ...more });
  const cardOf = async (agent: string) =>
    (await gateway.call('GET', `/a2a/agents/${agent}/.well-known/agent-card.json`)).body;
  const outcome = ({ status }: any) => [status.state, status.message?.parts[0].text];

  it('calls the tool with a data part, a JSON text, or the only text parameter', async () => {
    for (const message of [data({ word: 'hé' }), userMessage('{"word": "hé"}'), userMessage('hé')]) {
      const task = await send('shouter', message);
      expect(task.status.state).toBe('TASK_STATE_COMPLETED');
      expect(task.artifacts).toEqual([{ artifactId: 'result', name: 'shout', parts: [{ text: 'HÉ' }] }]);
    }
    expect(upstream.calls.filter(({ name }) => name === 'shout').map(({ args }) => args)).toEqual(
      Array(3).fill({ word: 'hé' }),
    );
  });

  it('has the tools of the server as its skills, and the skill of a message names the tool', async () => {
    const { skills } = await cardOf('office');
    expect(skills.map(({ id }: any) => id)).toEqual(['echo', 'shout', 'send', 'fails', 'refuses', 'never']);
    expect(skills[1]).toEqual({
      id: 'shout',
      name: 'Shout',
      description: 'Says it louder.',
      tags: ['mcp', 'office'],
      ...schemaOf('word'),
    });
    expect((await cardOf('shouter')).skills.map(({ id }: any) => id)).toEqual(['shout']);
    expect((await send('office', data({ word: 'a' }, 'shout'))).artifacts[0].parts).toEqual([{ text: 'A' }]);
    const [state, why] = outcome(await send('office', userMessage('a')));
    expect([state, why]).toEqual(['TASK_STATE_FAILED', expect.stringContaining('one of: echo, shout, send')]);
    expect(outcome(await send('office', data({}, 'absent')))[0]).toBe('TASK_STATE_FAILED');
  });

  it('shows a tool that the server adds, and hides one that it removes', async () => {
    const one = await TestUpstream.start();
    await register(one, 'changing');
    await publish(gateway, { name: 'changing', executor: { kind: 'mcp-tool', serverId: 'changing' } });
    const skills = async () => (await cardOf('changing')).skills.map(({ id }: any) => id);
    expect(await skills()).toEqual(['echo']);
    one.add('added', () => text('new'));
    await gateway.call('POST', '/api/mcp/servers/changing/refresh');
    expect(await eventually(skills, (all) => all.length === 2)).toEqual(['echo', 'added']);
    expect((await send('changing', data({}, 'added'))).artifacts[0].parts).toEqual([{ text: 'new' }]);
    await gateway.call('DELETE', '/api/mcp/servers/changing');
    expect(outcome(await send('changing', data({}, 'echo')))).toEqual([
      'TASK_STATE_FAILED',
      'the MCP server behind this agent is no longer registered',
    ]);
    await one.close();
  });

  it('an agent with named skills has no others, even if the server has', async () => {
    const executor = { kind: 'mcp-tool', serverId: 'office' };
    await publish(gateway, { name: 'narrow', executor, skills: [{ id: 'shout' }, { id: 'echo' }] });
    const before = upstream.calls.length;
    expect(outcome(await send('narrow', data({}, 'send')))).toEqual([
      'TASK_STATE_FAILED',
      expect.stringContaining('one of: shout, echo'),
    ]);
    expect(upstream.calls).toHaveLength(before);
  });

  it('fails a message without usable arguments before a call', async () => {
    const before = upstream.calls.length;
    const task = await send('office', userMessage('dear reader', { metadata: { skillId: 'send' } }));
    expect(task.status).toMatchObject({
      state: 'TASK_STATE_FAILED',
      message: { parts: [{ text: expect.stringContaining('data part') }], metadata: { errorCode: 'invalid_params' } },
    });
    expect(upstream.calls).toHaveLength(before);
  });

  it('AE-68 keeps text, images, links, resources and structured content, and fails as the tool does', async () => {
    upstream.add('all', () => ({
      content: [
        { type: 'text', text: 'one' },
        { type: 'text', text: '{"n": 1}' },
        { type: 'image', data: 'AAAA', mimeType: 'image/png' },
        { type: 'resource_link', uri: 'file:///a.txt', name: 'a.txt', mimeType: 'text/plain' },
        { type: 'resource', resource: { uri: 'test://x', text: 'x', mimeType: 'text/plain' } },
      ],
      structuredContent: { n: 1 },
    }));
    await gateway.call('POST', '/api/mcp/servers/office/refresh');
    const task = await send('office', data({}, 'all'));
    expect(task.artifacts[0].parts).toEqual([
      { text: 'one' },
      { raw: 'AAAA', mediaType: 'image/png' },
      { url: 'file:///a.txt', filename: 'a.txt', mediaType: 'text/plain' },
      { text: 'x', mediaType: 'text/plain', metadata: { uri: 'test://x' } },
      { data: { n: 1 } },
    ]);
    const failed = await send('office', data({}, 'fails'));
    expect([outcome(failed), failed.artifacts ?? []]).toEqual([['TASK_STATE_FAILED', 'no paper left'], []]);
    expect((await send('office', data({}, 'refuses'))).status.message).toMatchObject({
      parts: [{ text: expect.stringContaining('not on Sundays') }],
      metadata: { errorCode: 'remote_error' },
    });
  });

  it('fails with the reason of a broken connection, at once and finally', async () => {
    const one = await TestUpstream.start();
    await register(one, 'broken');
    await publish(gateway, { name: 'broken', executor: { kind: 'mcp-tool', serverId: 'broken', tool: 'echo' } });
    await one.down();
    for (let time = 0; time < 2; time++)
      expect((await send('broken', data({ text: 'x' }))).status).toMatchObject({
        state: 'TASK_STATE_FAILED',
        message: { metadata: { errorCode: 'remote_transport' } },
      });
    await one.close();
  });

  it('needs permission for the tool call from the sender of the message', async () => {
    const forbid = `forbid(principal == User::"eve", action == Action::"mcp_call", resource == Tool::"office__shout")
      when { context.input.hasTag("word") && context.input.getTag("word") == "secret" };`;
    const { body } = await gateway.call('POST', '/api/policies', { name: 'no shouting', text: forbid });
    const [eve, ann] = [await gateway.tokenOf('default', 'eve'), await gateway.tokenOf('default', 'ann')];
    const before = upstream.calls.length;
    const refused = await send('shouter', data({ word: 'secret' }), eve);
    expect(refused.status).toMatchObject({
      state: 'TASK_STATE_REJECTED',
      message: { metadata: { errorCode: 'denied' } },
    });
    expect(upstream.calls).toHaveLength(before);
    expect((await send('shouter', data({ word: 'hello' }), eve)).status.state).toBe('TASK_STATE_COMPLETED');
    expect((await send('shouter', data({ word: 'secret' }), ann)).status.state).toBe('TASK_STATE_COMPLETED');
    await gateway.call('DELETE', `/api/policies/${body.id}`);
    const { items } = (await gateway.call('GET', '/api/audit/events?limit=200')).body;
    const ofEve = items.filter(({ verb, principal }: any) => verb === 'office__shout' && principal.id === 'eve');
    expect(ofEve.map(({ outcome: end }: any) => end)).toEqual(['completed', 'denied']);
  });

  it('relays progress as updates of the task, and a cancel to the server', async () => {
    const seen: string[] = [];
    upstream.add('slow', (_args, signal) => {
      seen.push('called');
      signal.addEventListener('abort', () => seen.push('canceled'));
      return never();
    });
    await gateway.call('POST', '/api/mcp/servers/office/refresh');
    const stream = await rpcStream(gateway, 'SendStreamingMessage', { message: data({}, 'slow') }, { agent: 'office' });
    const { id } = (await stream.next())!.data.result.task;
    await eventually(
      () => seen,
      ([first]) => first === 'called',
    );
    await rpc(gateway, 'CancelTask', { id }, { agent: 'office' });
    await eventually(
      () => seen,
      ([, second]) => second === 'canceled',
    );
    expect((await stream.rest()).at(-1)!.data.result.statusUpdate.status.state).toBe('TASK_STATE_CANCELED');

    const fixture = await startFixture('auto');
    await register(fixture, 'fixture');
    await publish(gateway, { name: 'worker', executor: { kind: 'mcp-tool', serverId: 'fixture' } });
    const message = data({}, 'test_tool_with_progress');
    const frames = await (await rpcStream(gateway, 'SendStreamingMessage', { message }, { agent: 'worker' })).rest();
    const metadata = frames.flatMap(({ data: { result } }: Frame) => result.statusUpdate?.metadata ?? []);
    expect(metadata[0]).toMatchObject({ progress: 0, total: 100 });
    expect(frames.at(-1)!.data.result.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
    await fixture.close();
  });

  it.each([
    ['an unknown server', { serverId: 'absent' }, 'executor.serverId'],
    ['an unknown tool', { serverId: 'office', tool: 'absent' }, 'executor.tool'],
  ])('refuses to be published for %s', async (_what, members, field) => {
    const body = { name: 'bad', description: 'x', executor: { kind: 'mcp-tool', ...members } };
    const answer = await gateway.call('POST', '/api/a2a/published', body);
    expect([answer.status, answer.body]).toEqual([
      422,
      expect.objectContaining({ code: 'unprocessable', violations: [expect.objectContaining({ field })] }),
    ]);
    expect((await gateway.call('PATCH', '/api/a2a/published/shouter', { executor: body.executor })).status).toBe(422);
  });

  it('sees no servers and no agents of another org', async () => {
    const other = await gateway.tokenOf('other', 'oscar', 'admin');
    const body = { name: 'theirs', description: 'x', executor: { kind: 'mcp-tool', serverId: 'office' } };
    expect((await gateway.call('POST', '/api/a2a/published', body, other)).status).toBe(422);
    const before = upstream.calls.length;
    await rpcError(
      gateway,
      'SendMessage',
      { message: data({ word: 'x' }) },
      { agent: 'shouter@default', token: other },
    );
    expect(upstream.calls).toHaveLength(before);
  });
});

describe('a tool that asks before it answers', () => {
  let gateway: TestGateway;
  const open: { close(): Promise<unknown> }[] = [];
  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  afterAll(async () => {
    await Promise.all(open.map((one) => one.close()));
    await gateway.close();
  });

  const worker = async (eras: 'legacy' | 'modern') => {
    const one = await startFixture(eras);
    open.push(one);
    await gateway.call('POST', '/api/mcp/servers', { id: eras, url: one.url });
    await publish(gateway, { name: eras, executor: { kind: 'mcp-tool', serverId: eras } });
    return async (words: string, more: Record<string, unknown>) =>
      (await rpc(gateway, 'SendMessage', { message: userMessage(words, more) }, { agent: eras })).task;
  };
  const skill = (skillId: string) => ({ metadata: { skillId }, parts: [{ data: {} }] });

  it('leaves the task to its caller, and continues with the answer', async () => {
    const send = await worker('modern');
    const asked = await send('', skill('test_input_required_result_elicitation'));
    expect(asked.status).toMatchObject({
      state: 'TASK_STATE_INPUT_REQUIRED',
      message: { metadata: { kind: 'form', requestedSchema: { properties: { name: { type: 'string' } } } } },
    });
    const { id: taskId } = asked;
    const done = await send('Ada', { taskId });
    expect([done.status.state, done.artifacts[0].parts]).toEqual(['TASK_STATE_COMPLETED', [{ text: 'Hello, Ada!' }]]);
    const sampled = await send('', skill('test_input_required_result_sampling'));
    expect(sampled.status).toMatchObject({
      state: 'TASK_STATE_FAILED',
      message: { parts: [{ text: expect.stringContaining('sampling/createMessage') }] },
    });
  });

  it('may ask during its call, as servers of the 2025 era do', async () => {
    const send = await worker('legacy');
    const parts = [{ data: { message: 'who?' } }];
    const asked = await send('', { metadata: { skillId: 'test_elicitation' }, parts });
    expect(asked.status).toMatchObject({
      state: 'TASK_STATE_INPUT_REQUIRED',
      message: { parts: [{ text: 'who?' }], metadata: { requestedSchema: { type: 'object' } } },
    });
    const { id: taskId } = asked;
    const vague = await send('Ada', { taskId });
    expect(vague.status).toMatchObject({
      state: 'TASK_STATE_INPUT_REQUIRED',
      message: { parts: [{ text: expect.stringContaining('data part') }] },
    });
    const done = await send('', { taskId, parts: [{ data: { username: 'ada', email: 'a@b.c' } }] });
    expect(done.artifacts[0].parts[0].text).toContain('"username":"ada"');
  });
});

describe('when the caller of a tool is killed', () => {
  const kinds: UpstreamKind[] = ['sessions', 'modern'];
  it.each(kinds)('one of %s is called again only if that is safe', async (kind) => {
    const home = await startTestGateway({ RIALTO_ROLE: 'api' });
    const upstream = await TestUpstream.start(kind);
    let isStuck = true;
    const once = () => (isStuck ? never() : text('done'));
    upstream.add('charge', once);
    upstream.add('look', once, { annotations: { readOnlyHint: true } });
    await home.call('POST', '/api/mcp/servers', { id: 'bank', url: upstream.url });
    await publish(home, { name: 'bank', executor: { kind: 'mcp-tool', serverId: 'bank' } });
    const send = async (skillId: string): Promise<string> => {
      const message = userMessage('', { parts: [{ data: {} }], metadata: { skillId } });
      const params = { message, configuration: { returnImmediately: true } };
      return (await rpc(home, 'SendMessage', params, { agent: 'bank' })).task.id;
    };
    const worker = home.beside({ RIALTO_ROLE: 'worker' });
    await worker.ready;
    const [charge, look] = [await send('charge'), await send('look')];
    await eventually(
      () => upstream.calls.length,
      (calls) => calls === 2,
    );
    worker.child.kill('SIGKILL');
    await worker.ended;
    isStuck = false;
    await home.beside({ RIALTO_ROLE: 'worker' }).ready;
    const end = (id: string) =>
      eventually(
        () => rpc(home, 'GetTask', { id }, { agent: 'bank' }),
        ({ status }) => ['TASK_STATE_COMPLETED', 'TASK_STATE_FAILED'].includes(status.state),
      );
    expect((await end(charge)).status).toMatchObject({
      state: 'TASK_STATE_FAILED',
      message: {
        parts: [{ text: expect.stringContaining('the outcome is unknown') }],
        metadata: { errorCode: 'outcome_unknown', ambiguous: true },
      },
    });
    expect((await end(look)).artifacts[0].parts).toEqual([{ text: 'done' }]);
    expect(upstream.calls.map(({ name }) => name).sort()).toEqual(['charge', 'look', 'look']);
    await upstream.close();
    await home.close();
  });
});

describe('(R3) a call that its server may have received, but did not answer', () => {
  const kinds: UpstreamKind[] = ['sessions', 'modern', 'websocket'];
  it.each(kinds)('keeps its key when the tool of a server of %s must not be called twice', async (kind) => {
    const gateway = await startTestGateway();
    const upstream = await TestUpstream.start(kind);
    let isStuck = true;
    const answer = () => (isStuck ? never() : text('done'));
    upstream.add('charge', answer);
    upstream.add('look', answer, { annotations: { idempotentHint: true } });
    await gateway.call('POST', '/api/mcp/servers', { id: 'bank', url: upstream.url });
    await publish(gateway, { name: 'bank', executor: { kind: 'mcp-tool', serverId: 'bank' } });
    const send = (skillId: string) => {
      const message = { ...userMessage('', { parts: [{ data: {} }], metadata: { skillId } }), messageId: skillId };
      return rpc(gateway, 'SendMessage', { message }, { agent: 'bank', headers: { 'Idempotency-Key': skillId } });
    };
    const sent = [send('charge'), send('look')];
    await eventually(
      () => upstream.calls.length,
      (calls) => calls === 2,
    );
    await upstream.down();
    const [charge, look] = await Promise.all(sent);
    expect([charge.task.status, look.task.status]).toMatchObject([
      { state: 'TASK_STATE_FAILED', message: { metadata: { errorCode: 'outcome_unknown', ambiguous: true } } },
      { state: 'TASK_STATE_FAILED', message: { metadata: { errorCode: 'remote_transport' } } },
    ]);
    isStuck = false;
    await upstream.listen();
    expect((await send('charge')).task.id).toBe(charge.task.id);
    expect((await send('look')).task.id).not.toBe(look.task.id);
    expect(upstream.calls.filter(({ name }) => name === 'charge')).toHaveLength(1);
    await upstream.close();
    await gateway.close();
  });
});
