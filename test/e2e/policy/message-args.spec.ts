import { publish, rpcCall } from '../../support/clients/a2a.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { data } from '../../support/stubs/stub-behaviours.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';

const isMain = 'context.input.hasTag("branch") && context.input.getTag("branch") == "main"';
const main = { branch: 'main' };
const envelope = Buffer.concat([Buffer.from([1]), Buffer.alloc(60)]).toString('base64url');

describe('policies on the arguments of a message', () => {
  let gateway: TestGateway;
  let stub: StubAgent;

  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_RATE_LIMIT_TOOL: '3' });
    stub = await startStubAgent();
    await publish(gateway);
    expect((await gateway.call('POST', '/api/a2a/agents', { url: stub.url, slug: 'remote' })).status).toBe(201);
    await publish(gateway, { name: 'front', executor: { kind: 'remote', agentId: 'remote' } });
    for (const [name, text] of Object.entries({
      own: `forbid(principal, action == Action::"task_submit", resource == PublishedAgent::"echo") when { ${isMain} };`,
      skill: `forbid(principal, action == Action::"task_submit", resource == PublishedAgent::"echo")
        when { context.input.hasTag("skillId") && context.input.getTag("skillId") == "deploy" };`,
      remote: `forbid(principal, action == Action::"a2a_invoke", resource) when { ${isMain} };`,
    }))
      expect((await gateway.call('POST', '/api/policies', { name, text })).status).toBe(201);
    stub.set(data({ ok: true }));
  });
  afterAll(async () => {
    await gateway.close();
    await stub.close();
  });

  const send = async (agent: string, parts: object[], more: object = {}) => {
    const message = { messageId: `m${Math.random()}`, role: 'ROLE_USER', parts, ...more };
    return (await rpcCall(gateway, 'SendMessage', { message }, { agent })).body;
  };

  const shapes: [string, object[], object?][] = [
    ['one data part', [{ data: main }]],
    ['text beside it', [{ data: main }, { text: 'x' }]],
    ['more data beside it', [{ data: {} }, { data: main }]],
    ['another value before it', [{ data: { branch: 'dev' } }, { data: main }]],
    ['another value after it', [{ data: main }, { data: { branch: 'dev' } }]],
    ['a list', [{ data: [main] }]],
    ['an envelope with cleartext', [{ data: { ...main, encrypted_payload: envelope, encryption_version: 'x' } }]],
  ];

  it.each(shapes)('decide on %s', async (_, parts) => {
    expect((await send('echo', parts)).error).toMatchObject({
      message: expect.stringMatching(/policy|several values/),
    });
    const { error, result } = await send('front', parts);
    expect(error?.message ?? result.task.status.state).toMatch(/several values|TASK_STATE_REJECTED/);
    expect(stub.requests).toEqual([]);
  });

  it('decide on the named skill, also when the data names another', async () => {
    const more = { metadata: { skillId: 'deploy' } };
    for (const parts of [[{ text: 'x' }], [{ data: { skillId: 'harmless' } }]])
      expect((await send('echo', parts, more)).error).toBeDefined();
  });

  it('decide on the data of send_to_agent', async () => {
    const params = { name: 'send_to_agent', arguments: { agent: 'echo', message: 'x', data: main } };
    const { body } = await gateway.call('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    expect(body.error ?? body.result).toMatchObject(body.error ? {} : { isError: true });
  });

  it('permit other values', async () => {
    for (const agent of ['echo', 'front']) {
      const { result } = await send(agent, [{ data: { branch: 'dev' } }, { text: 'x' }]);
      expect(result.task.status.state).toBe('TASK_STATE_COMPLETED');
    }
    expect(stub.requests).toHaveLength(1);
  });

  it.each([true, false])(
    'and the limit of a tool counts the messages that are passed on, streams: %s',
    async (streams) => {
      const slug = streams ? 'streaming' : 'plain';
      const agent = await startStubAgent({ name: slug, capabilities: { streaming: streams } });
      agent.set(data({ ok: true }));
      expect((await gateway.call('POST', '/api/a2a/agents', { url: agent.url, slug })).status).toBe(201);
      await publish(gateway, { name: `front-${slug}`, executor: { kind: 'remote', agentId: slug } });
      // The messages may fall into two minutes, each of which allows three.
      const said: string[] = [];
      for (let message = 0; message < 8; message++) {
        const { task } = (await send(`front-${slug}`, [{ text: 'x' }])).result;
        said.push(task.status.message?.parts[0].text ?? task.status.state);
      }
      expect(said).toContain('this tool may be called 3 times a minute');
      expect(agent.requests.length).toBeLessThan(7);
      expect(new Set(agent.requests.map(({ operation }) => operation))).toEqual(new Set([streams ? 'stream' : 'send']));
      await agent.close();
    },
  );
});
