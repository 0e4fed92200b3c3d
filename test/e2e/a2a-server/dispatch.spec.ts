import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { ask, asyncTask, data, message, text } from '../../support/stubs/stub-behaviours.js';

describe('A2A doors without an agent name, in an org without a default agent', () => {
  let gateway: TestGateway;
  let weather: StubAgent;
  let invoices: StubAgent;

  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_CARD_REFRESH_SECONDS: '86400' });
    const agent = async (name: string, skills: { id: string; description: string }[]) => {
      const stub = await startStubAgent({ name, skills, capabilities: { streaming: false } });
      const { body } = await gateway.call('POST', '/api/a2a/agents', { url: stub.url, slug: name });
      const executor = { kind: 'remote', agentId: body.id };
      await publish(name, { executor, skills: skills.map((skill) => ({ name: skill.id, tags: [], ...skill })) });
      return stub;
    };
    weather = await agent('weather', [
      { id: 'alerts', description: 'Lists warnings about storms' },
      { id: 'forecast', description: 'Tells the weather forecast of a city' },
    ]);
    invoices = await agent('invoices', [{ id: 'book', description: 'Books an invoice of a supplier' }]);
  });
  afterAll(async () => {
    await gateway.close();
    await Promise.all([weather.close(), invoices.close()]);
  });
  beforeEach(() => {
    weather.set(text('sunny'));
    invoices.set(data({ booked: true }));
    weather.requests.length = invoices.requests.length = 0;
  });

  const publish = (name: string, more: object = {}, token?: string) =>
    gateway.call(
      'POST',
      '/api/a2a/published',
      { name, description: 'An agent.', executor: { kind: 'echo' }, a2a_enabled: true, ...more },
      token,
    );
  const rpc = (
    method: string,
    params: unknown,
    { path = '/a2a', token, headers = {} }: { path?: string; token?: string; headers?: Record<string, string> } = {},
  ) => gateway.call('POST', path, { jsonrpc: '2.0', id: 1, method, params }, token, headers);
  let count = 0;
  const paramsOf = (words: string, more: object = {}) => ({
    message: { messageId: `m${++count}`, role: 'ROLE_USER', parts: [{ text: words }], ...more },
  });
  const sent = async (words: string, more: object = {}, options = {}) =>
    (await rpc('SendMessage', paramsOf(words, more), options)).body.result.task;
  const metadataOf = (task: any) => task.metadata['rialto/dispatch'];
  const get = async (id: string, options = {}) => (await rpc('GetTask', { id }, options)).body;

  it('X3.7 an agent that is published for one remote skill cannot reach another skill', async () => {
    const executor = { kind: 'remote', agentId: 'weather', skillId: 'forecast' };
    await publish('one_skill', { executor });
    const asked = paramsOf('storms?', { metadata: { skillId: 'alerts' } });
    const { body } = await rpc('SendMessage', asked, { path: '/a2a/agents/one_skill' });
    expect(body.result.task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(weather.requests.map(({ json }: any) => json.params.message.metadata.skillId)).toEqual(['forecast']);
    await gateway.call('DELETE', '/api/a2a/published/one_skill');
  });

  it('(N9) chooses among the agents that accept every part of the message, if there are any', async () => {
    const parts = [
      { text: 'weather forecast' },
      { data: { a: 1 } },
      { url: 'https://x.example/a', mediaType: 'image/x-odd' },
    ];
    await publish('plain_weather', {
      description: 'Tells the weather forecast',
      defaultInputModes: ['text/plain'],
      skills: [{ id: 'forecast', name: 'forecast', tags: [], description: 'Tells the weather forecast of a city' }],
    });
    await publish('anything', { defaultInputModes: ['*/*'] });
    for (let tries = 0; tries < 10; tries++) expect(metadataOf(await sent('', { parts })).agent).toBe('anything');
    await gateway.call('DELETE', '/api/a2a/published/anything');
    const { body } = await rpc('SendMessage', paramsOf('', { parts }));
    expect(body.error.code).toBe(-32005);
    await gateway.call('DELETE', '/api/a2a/published/plain_weather');
  });

  it.each(['/a2a', '/a2a/', '/_agent-native/a2a'])(
    'AN-89 a message to %s goes to the agent with the best match',
    async (path) => {
      const task = await sent('What is the weather forecast for Lisbon?', {}, { path });
      expect(task).toMatchObject({
        status: { state: 'TASK_STATE_COMPLETED' },
        artifacts: [{ parts: [{ text: 'sunny' }] }],
      });
      expect(metadataOf(task)).toEqual({
        agent: 'weather',
        skillId: 'forecast',
        reason: 'its skill "forecast" suits the message best of 2 agents',
        fit: expect.any(Number),
        score: expect.any(Number),
        seed: expect.any(Number),
      });
      expect((weather.requests[0]!.json as any).params.message.metadata.skillId).toBe('forecast');
      expect(invoices.requests).toEqual([]);
      expect(metadataOf((await get(task.id)).result)).toEqual(metadataOf(task));
      expect(metadataOf(await sent('Please book this invoice', {}, { path }))).toMatchObject({ agent: 'invoices' });
    },
  );

  it('AN-89 the older dialect gets an answer in its own format', async () => {
    const older = {
      message: { role: 'user', messageId: 'o1', kind: 'message', parts: [{ kind: 'text', text: 'book the invoice' }] },
    };
    const { result } = (await rpc('message/send', older, { path: '/_agent-native/a2a' })).body;
    expect(result).toMatchObject({
      kind: 'task',
      status: { state: 'completed' },
      metadata: { 'rialto/dispatch': { agent: 'invoices' } },
    });
    expect((await rpc('tasks/get', { id: result.id })).body.result.metadata['rialto/dispatch'].agent).toBe('invoices');
  });

  it('AN-89 later requests go to the agent of the task: questions, reads, cancels', async () => {
    invoices.set(ask('Which supplier?', data({ booked: 'Acme' })));
    const asked = await sent('book an invoice');
    expect(asked.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    const answered = await sent('The weather forecast of a city', { taskId: asked.id });
    expect(answered).toMatchObject({ id: asked.id, status: { state: 'TASK_STATE_COMPLETED' } });
    expect(metadataOf(answered).agent).toBe('invoices');
    expect(weather.requests).toEqual([]);
    invoices.set(asyncTask(1_000, text('never')));
    const { body } = await rpc('SendMessage', {
      ...paramsOf('book an invoice'),
      configuration: { returnImmediately: true },
    });
    await invoices.waitForRequests(3);
    const canceled = (await rpc('CancelTask', { id: body.result.task.id })).body.result;
    expect(canceled).toMatchObject({ id: body.result.task.id, status: { state: 'TASK_STATE_CANCELED' } });
    expect((await get(canceled.id)).result.metadata['rialto/dispatch'].agent).toBe('invoices');
  });

  it('AN-89 a conversation stays with its agent', async () => {
    const first = await sent('book an invoice');
    const second = await sent('and the weather forecast of a city?', { contextId: first.contextId });
    expect(metadataOf(second)).toMatchObject({
      agent: 'invoices',
      reason: 'an earlier message of its context went to it',
    });
    expect([second.id === first.id, invoices.requests.length, weather.requests.length]).toEqual([false, 2, 0]);
    const bob = await gateway.tokenOf('default', 'bob');
    expect(
      metadataOf(await sent('weather forecast of a city', { contextId: first.contextId }, { token: bob })).agent,
    ).toBe('weather');
  });

  it('AN-89 one key is one task, even when another agent matches better later', async () => {
    const once = { headers: { 'idempotency-key': 'once' } };
    const first = await sent('book an invoice quickly', {}, once);
    await publish('booker', {
      skills: [{ id: 'book', name: 'book', description: 'book an invoice quickly', tags: [] }],
    });
    expect(metadataOf(await sent('book an invoice quickly')).agent).toBe('booker');
    expect((await sent('book an invoice quickly', {}, once)).id).toBe(first.id);
    await gateway.call('DELETE', '/api/a2a/published/booker');
    expect(invoices.requests).toHaveLength(1);
  });

  it('AN-89 concurrent messages with one key are one task, also when two agents match equally', async () => {
    const twins = ['castor', 'pollux'];
    for (const name of twins)
      await publish(name, { skills: [{ id: 'twin', name: 'twin', description: 'Tells of twins', tags: [] }] });
    const agents = new Set<string>();
    // By chance, one of them may be chosen several times in a row.
    for (let key = 0; key < 8 || (agents.size < 2 && key < 60); key++) {
      const same = { headers: { 'idempotency-key': `twins-${key}` } };
      const three = await Promise.all([1, 2, 3].map(() => sent('tell of the twins', {}, same)));
      expect(new Set(three.map(({ id }) => id)).size).toBe(1);
      agents.add(metadataOf(three[0]).agent);
    }
    for (const name of twins) await gateway.call('DELETE', `/api/a2a/published/${name}`);
    expect([...agents].sort()).toEqual(twins);
  });

  it('AN-89 a stream begins with the task, and names the chosen agent', async () => {
    await publish('streamer', { skills: [{ id: 'tide', name: 'tide', description: 'Tells the tide', tags: [] }] });
    const { status, body } = await rpc('SendStreamingMessage', paramsOf('tell the tide'));
    await gateway.call('DELETE', '/api/a2a/published/streamer');
    expect(status).toBe(200);
    const [first] = (body as string)
      .split('\n\n')
      .map((frame) => JSON.parse(frame.slice(frame.indexOf('data: ') + 6) || 'null'));
    expect(metadataOf(first.result.task)).toMatchObject({ agent: 'streamer', skillId: 'tide' });
  });

  it('AN-89 a message that is the whole answer names the agent too', async () => {
    weather.set(message([{ text: 'sunny' }]));
    const { result } = (await rpc('SendMessage', paramsOf('weather forecast'))).body;
    const { metadata } = result.message ?? result.task;
    expect(metadata['rialto/dispatch'].agent).toBe('weather');
  });

  it('AN-89 an agent that is unable, forbidden or missing is never chosen, and the error has the reasons', async () => {
    const excluded = async (words: string, more: object = {}, options = {}) => {
      const { status, body } = await rpc('SendMessage', paramsOf(words, more), options);
      expect([status, body.error.code, body.error.message]).toEqual([200, -32602, 'no agent can take this work']);
      return JSON.stringify(body.error.data);
    };
    expect(await excluded('x', { metadata: { skillId: 'cobol' } })).toContain('it lacks the skills: cobol');
    const forbid =
      'forbid(principal == User::"eve", action == Action::"task_submit", resource == PublishedAgent::"weather");';
    await gateway.call('POST', '/api/policies', { name: 'no-weather', text: forbid });
    const eve = await gateway.tokenOf('default', 'eve');
    expect(await excluded('x', { metadata: { skillId: 'forecast' } }, { token: eve })).toContain(
      'you may not send to it',
    );
    await gateway.call('POST', '/api/policies', {
      name: 'nothing',
      text: forbid.replace(' == PublishedAgent::"weather"', ''),
    });
    expect(await rpc('SendMessage', paramsOf('x'), { token: eve })).toMatchObject({ status: 403 });
    await weather.down();
    await gateway.call('POST', '/api/a2a/agents/weather/refetch');
    expect(await excluded('x', { metadata: { skillId: 'forecast' } })).toContain('it is unreachable');
    await weather.up();
    await gateway.call('POST', '/api/a2a/agents/weather/refetch');
    expect(metadataOf(await sent('forecast', { metadata: { skillId: 'forecast' } })).agent).toBe('weather');
  });

  it("AN-89 another org sees neither agents nor tasks; a caller cannot forge the gateway's metadata", async () => {
    const globex = await gateway.tokenOf('globex', 'gina', 'admin');
    const task = await sent('book an invoice');
    expect(await rpc('SendMessage', paramsOf('book an invoice'), { token: globex })).toMatchObject({
      status: 404,
      body: { error: { message: 'no default agent is set' } },
    });
    for (const method of ['GetTask', 'CancelTask'])
      expect((await rpc(method, { id: task.id }, { token: globex })).body.error.code).toBe(-32001);
    expect((await rpc('SendMessage', paramsOf('x', { taskId: task.id }), { token: globex })).body.error.code).toBe(
      -32001,
    );
    expect((await rpc('ListTasks', {})).status).toBe(404);
    const forged = { ...paramsOf('book it'), metadata: { 'rialto/dispatch': { skillId: 'x' }, mine: 1 } };
    expect((await rpc('SendMessage', forged, { path: '/a2a/agents/invoices' })).body.result.task.metadata).toEqual({
      mine: 1,
    });
  });

  it('RE-64 RE-72 the call is listed as routed; polls of its task are not calls', async () => {
    weather.set(asyncTask(3, text('sunny')));
    await gateway.sql('delete from a2a_task_instances');
    const task = await sent('weather forecast');
    expect(task.status.state).toBe('TASK_STATE_COMPLETED');
    const rows = await eventually(
      async () => (await gateway.call('GET', '/api/a2a/dispatches')).body.items,
      (found) => found.length > 0 && found[0].status === 'completed',
    );
    expect(rows).toMatchObject([
      {
        dispatchType: 'transparent',
        workType: 'forecast',
        agentName: 'weather',
        input: [{ text: 'weather forecast' }],
      },
    ]);
    expect(weather.requests.length).toBeGreaterThan(2);
  });

  it('AN-89 a default agent receives all messages', async () => {
    await gateway.call('PATCH', '/api/orgs/default', { defaultAgent: 'weather' });
    const task = await sent('book an invoice');
    await gateway.call('PATCH', '/api/orgs/default', { defaultAgent: null });
    expect([task.metadata, weather.requests.length]).toEqual([undefined, 1]);
  });
});
