import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startSdkAgentV03, startSdkAgentV1, startSdkGrpcAgent } from '../../support/stubs/sdk-agents.js';
import { startStubAgent, type StubAgent, type StubAgentOptions } from '../../support/stubs/stub-agent.js';
import { artifacts, data, echo, message, multi, text } from '../../support/stubs/stub-behaviours.js';
import { raw } from '../../support/stubs/stub-hostile.js';
import type { CapturedRequest } from '../../support/stubs/stub-call.js';

describe('MCP tools/call: the requests to the agent', () => {
  let gateway: TestGateway;
  const open: { close(): Promise<void> }[] = [];

  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  afterAll(async () => {
    await gateway.close();
    await Promise.all(open.map((one) => one.close()));
  });

  const stub = async (options: StubAgentOptions, more: object = {}): Promise<StubAgent> => {
    const agent = await startStubAgent(options);
    open.push(agent);
    const { status, body } = await gateway.call('POST', '/api/a2a/agents', { url: agent.url, ...more });
    expect([status, body.code]).toEqual([201, undefined]);
    return agent;
  };
  const call = (name: string, args: unknown = {}, token?: string) =>
    gateway.rpc('tools/call', { name, arguments: args }, token);
  const sent = (request: CapturedRequest) => request.json as any;

  it('RE-08 alias and canonical name have one handler: the requests differ only in their ids', async () => {
    const agent = await stub({ card: 'v03', name: 'Twice', skills: [{ id: 'do-it' }] });
    const replies = [await call('twice.do-it', { a: 1 }), await call('a2a_twice_do_it', { a: 1 })];
    expect(replies[0].result).toEqual(replies[1].result);
    const [first, second] = agent.requests.map((request) => structuredClone(sent(request)));
    expect(first.id).not.toBe(second.id);
    for (const body of [first, second]) {
      delete body.id;
      delete body.params.message.messageId;
      delete body.params.correlationId;
      delete body.params.taskId;
    }
    expect(first).toEqual(second);
  });

  it('RE-12 RE-41 invalid arguments give a result for the model; the call is recorded and not sent', async () => {
    const inputSchema = { type: 'object', required: ['projectId'], properties: { projectId: { type: 'string' } } };
    const agent = await stub({ name: 'Strict', skills: [{ id: 'deploy', inputSchema }] });
    for (const args of [{}, { projectId: 1 }]) {
      const { result } = await call('strict.deploy', args);
      expect(result.isError).toBe(true);
      expect(result.content[0].text).toContain('projectId');
    }
    expect(agent.requests).toEqual([]);
    const recorded = `
      select
      from audit_events
      where event->>'verb' = 'strict.deploy' and event->'error'->>'code' = 'invalid_params'`;
    expect(await gateway.sql(recorded)).toHaveLength(2);
    expect((await call('strict.deploy', { projectId: 'p' })).result.isError).toBeUndefined();
    expect(agent.requests).toHaveLength(1);
  });

  it('RE-15 RE-16 RE-17 RE-18 RE-19 RE-20 the form for v0.3 agents', async () => {
    const agent = await stub(
      { card: 'v03', name: 'Older', skills: [{ id: 'deploy' }] },
      { credential: { type: 'bearer', token: 'stub-secret-4711' } },
    );
    const { body: registered } = await gateway.call('GET', '/api/a2a/agents/older');
    const args = { branch: 'main', nested: { list: [1, null, 'ü'] } };
    await call('older.deploy', args);
    await call('older.deploy', args);
    const [request, next] = agent.requests as [CapturedRequest, CapturedRequest];
    expect(request).toMatchObject({ method: 'POST', path: '/', dialect: 'v03-jsonrpc' });
    expect(request.headers['content-type']).toBe('application/json');
    expect(request.headers.authorization).toBe('Bearer stub-secret-4711');
    expect(sent(request)).toEqual({
      jsonrpc: '2.0',
      id: expect.any(Number),
      method: 'message/send',
      params: {
        message: {
          kind: 'message',
          role: 'user',
          messageId: expect.any(String),
          parts: [{ kind: 'data', data: args }],
          skill: { skillId: 'deploy' },
        },
        correlationId: expect.stringMatching(new RegExp(`^a2a-${registered.id}-deploy-.+`)),
        taskId: sent(request).params.correlationId,
      },
    });
    expect(sent(next).id).not.toBe(sent(request).id);
    expect(sent(next).params.taskId).not.toBe(sent(request).params.taskId);
    const audited = await gateway.sql(`select event from audit_events where session_id = $1`, [
      sent(request).params.taskId,
    ]);
    expect(audited).toHaveLength(1);
    const everything = JSON.stringify([registered, audited, gateway.log]);
    expect(everything).not.toContain('stub-secret-4711');
  });

  it('RE-19 E9 the form for v1.0 agents: one data part, skill and session in the metadata', async () => {
    const agent = await stub({ card: 'v1', name: 'Newer', skills: [{ id: 'deploy' }] });
    await call('newer.deploy', { a: [true] });
    expect(agent.requests[0]!.headers['a2a-version']).toBe('1.0');
    expect(sent(agent.requests[0]!)).toEqual({
      jsonrpc: '2.0',
      id: expect.any(Number),
      method: 'SendMessage',
      params: {
        message: {
          messageId: expect.any(String),
          role: 'ROLE_USER',
          parts: [{ data: { a: [true] } }],
          metadata: { skillId: 'deploy', correlationId: expect.stringMatching(/^a2a-/) },
        },
      },
    });
  });

  it.each(['v1-rest', 'v03-rest'] as const)('an agent that offers only %s is called there', async (dialect) => {
    const card = dialect === 'v1-rest' ? 'v1' : 'v03';
    const agent = await stub({ card, speaks: [dialect], name: `Only ${dialect}`, skills: [{ id: 'go' }] });
    const { result, error } = await call(`only_${dialect.replace('-', '_')}.go`, { a: { b: null, c: '✓' } });
    expect(error).toBeUndefined();
    expect(result.structuredContent).toEqual({ ok: true });
    expect(agent.requests.map((request) => request.dialect)).toEqual([dialect]);
    expect(agent.requests[0]!.rawBody).toContain('"skillId":"go"');
    expect(agent.requests[0]!.rawBody).toMatch(/"correlationId":"a2a-/);
    expect(agent.requests[0]!.rawBody).toContain('{"b":null,"c":"✓"}');
  });

  it('RI-01 agents of the official SDK answer: v1.0 and v0.3 over each binding alone', async () => {
    const starts = [startSdkAgentV1, startSdkAgentV03].flatMap((start) => [
      () => start(['JSONRPC']),
      () => start(['HTTP+JSON']),
    ]);
    for (const [index, start] of [...starts, startSdkGrpcAgent].entries()) {
      const agent = await start();
      open.push(agent);
      const { body } = await gateway.call('POST', '/api/a2a/agents', { url: agent.url, slug: `official_${index}` });
      const tool = body.skills.find(({ id }: { id: string }) => id === 'echo').toolName as string;
      const { result, error } = await call(tool, { said: 'ünïcode ✓', none: null });
      expect(error).toBeUndefined();
      expect(JSON.stringify(result)).toContain('ünïcode ✓');
    }
  });

  describe.each(['v03', 'v1'] as const)('answers of a %s agent', (card) => {
    let agent: StubAgent;
    const value = { text: 'ünï ✓ \u0000 \ud83d\ude80', none: null, big: 1e21, list: [[], {}, [null]], 'a.b': -0.5 };

    beforeAll(async () => {
      agent = await stub({ card, name: `Answers ${card}` });
    });
    const ask = async () => (await call(`answers_${card}.work`)).result;

    it('RE-21 one data artifact becomes the object, without loss, also as structured content', async () => {
      agent.set(data(value));
      const result = await ask();
      expect(result.structuredContent).toEqual(value);
      expect(JSON.parse(result.content[0].text)).toEqual(value);
      expect(result.isError).toBeUndefined();
    });

    it.each([[[1, 2]], [null], [42], ['text'], [false]])(
      'RE-21 data that is not an object (%j) becomes its JSON',
      async (other) => {
        agent.set(data(other));
        const result = await ask();
        expect(result.structuredContent).toBeUndefined();
        expect(result.content).toEqual([
          { type: 'text', text: typeof other === 'string' ? other : JSON.stringify(other) },
        ]);
      },
    );

    it('RE-22 one text artifact, or a bare message, becomes the string', async () => {
      for (const behaviour of [text('só ✓\n"quoted"'), message([{ text: 'só ✓\n"quoted"' }])]) {
        agent.set(behaviour);
        expect(await ask()).toEqual({ content: [{ type: 'text', text: 'só ✓\n"quoted"' }] });
      }
    });

    it('RE-23 an artifact with several parts is returned whole, in order', async () => {
      agent.set(
        multi([{ text: 'one' }, { data: { two: 2 } }, { url: 'https://example.com/x', mediaType: 'text/plain' }]),
      );
      const { structuredContent } = await ask();
      expect(structuredContent.parts).toHaveLength(3);
      expect(structuredContent.parts[0].text).toBe('one');
      expect(structuredContent.parts[1].data).toEqual({ two: 2 });
      agent.set(artifacts([{ text: 'a' }], [{ text: 'b' }]));
      expect((await ask()).structuredContent.artifacts).toHaveLength(2);
    });

    it('RE-21 an empty answer names the task', async () => {
      agent.set(artifacts());
      expect((await ask()).structuredContent).toMatchObject({ state: 'completed', taskId: expect.any(String) });
    });
  });

  it('abuse 31 `__proto__` in an answer affects neither the gateway nor the caller', async () => {
    const agent = await stub({ card: 'v03', name: 'Proto' });
    agent.set((it) => {
      const whole = JSON.stringify(
        it.envelope({ kind: 'message', messageId: 'm', role: 'agent', parts: [{ kind: 'data', data: 0 }] }),
      );
      return raw(whole.replace('"data":0', '"data":{"__proto__":{"polluted":1},"constructor":2}'))(it);
    });
    const { result } = await call('proto.work');
    expect(result.content[0].text).toBe('{"constructor":2}');
    expect(({} as any).polluted).toBeUndefined();
  });

  it('RE-19 arguments arrive unchanged, with any content', async () => {
    const agent = await stub({ card: 'v03', name: 'Mirror', behaviour: echo });
    const args = { big: 1e21, neg: -0.1, none: null, deep: { a: [[[{ 'ü ✓': '\u2028' }]]] }, empty: {}, '': [] };
    const { result } = await call('mirror.work', args);
    expect(result.structuredContent.body.params.message.parts[0].data).toEqual(args);
    expect(sent(agent.requests[0]!).params.message.parts[0].data).toEqual(args);
  });
});
