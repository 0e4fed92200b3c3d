import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { echo } from '../../support/stubs/stub-behaviours.js';

const deploy = 'vercel_ops.deploy';

describe('MCP tools/call: abuse', () => {
  let gateway: TestGateway;
  let agent: StubAgent;
  let bob: string;

  beforeAll(async () => {
    gateway = await startTestGateway();
    bob = await gateway.tokenOf('default', 'bob');
    const skills = [{ id: 'deploy' }, { id: 'preview' }];
    agent = await startStubAgent({ card: 'v03', name: 'Vercel Ops', skills, behaviour: echo });
    const credential = { type: 'apiKey', header: 'X-Agent-Key', value: 'own-key-of-the-agent' };
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url, credential });
  });
  afterAll(async () => {
    await gateway.close();
    await agent.close();
  });
  beforeEach(() => void (agent.requests.length = 0));

  const post = (name: unknown, args: unknown = {}, headers: Record<string, string> = {}, token = bob) =>
    gateway.call(
      'POST',
      '/mcp',
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
      token,
      headers,
    );
  const policy = async (text: string) => {
    const { status, body } = await gateway.call('POST', '/api/policies', { name: `p${Math.random()}`, text });
    expect(status).toBe(201);
    return () => gateway.call('DELETE', `/api/policies/${body.id}`);
  };

  it('abuse 16 no spelling of a denied name bypasses the policy', async () => {
    const undo = await policy(`forbid(principal, action == Action::"a2a_invoke", resource == Skill::"${deploy}");`);
    for (const name of [deploy, 'a2a_vercel_ops_deploy']) {
      expect([name, (await post(name)).body.error.code]).toEqual([name, -32003]);
    }
    const spellings = [
      'Vercel_Ops.deploy',
      'vercel_ops.Deploy',
      'A2A_vercel_ops_deploy',
      'a2a_vercel_ops_Deploy',
      `${deploy} `,
      ` ${deploy}`,
      `${deploy}\u0000`,
      'vercel_ops\uff0edeploy',
      'vercel_ops．deploy',
      'vercel_ops..deploy',
      'vercel_ops/deploy',
      'vercel_ops.deploy.',
      'vercel_ops%2edeploy',
      'vercel_ops.deplo\u0079\u0301',
      'vercel-ops.deploy',
      '__proto__',
      'constructor',
      'toString',
    ];
    for (const name of spellings) expect([name, (await post(name)).body.error.code]).toEqual([name, -32602]);
    expect(agent.requests).toEqual([]);
    expect((await post('vercel_ops.preview')).body.result).toBeDefined();
    await undo();
  });

  it('abuse 16 D7 an existing and a missing tool get the same answer for a denied caller', async () => {
    const { body: stored } = await gateway.call('GET', '/api/policies');
    const [permit] = stored.items;
    await gateway.call('DELETE', `/api/policies/${permit.id}`);
    const errors = await Promise.all(
      [deploy, 'vercel_ops.nothing', 'nobody.deploy', 'a2a_vercel_ops_deploy', 'a2a_nobody_deploy'].map(
        async (name) => {
          const { code, message, data } = (await post(name)).body.error;
          return {
            code,
            message,
            data: { ...data, decisionId: 'any', verb: data.verb === name ? 'as called' : data.verb },
          };
        },
      ),
    );
    for (const error of errors) expect(error).toEqual(errors[0]);
    expect(errors[0]!.message).toContain('no permit matched');
    await gateway.call('POST', '/api/policies', { name: permit.name, text: permit.text });
  });

  it('abuse 16 a caller that may not call learns nothing about the schema', async () => {
    const undo = await policy(`forbid(principal, action == Action::"a2a_invoke", resource == Skill::"${deploy}");`);
    expect((await post(deploy, 'no object')).body.error.code).toBe(-32602);
    expect((await post(deploy, { x: { y: 1 } })).body.error.code).toBe(-32003);
    await undo();
  });

  it('D13 a policy reads the arguments', async () => {
    const undo = await policy(
      `forbid(principal, action == Action::"a2a_invoke", resource == Skill::"${deploy}") ` +
        'when { context.input.hasTag("branch") && context.input.getTag("branch") == "main" };',
    );
    expect((await post(deploy, { branch: 'main' })).body.error.code).toBe(-32003);
    expect((await post('a2a_vercel_ops_deploy', { branch: 'main' })).body.error.code).toBe(-32003);
    expect((await post(deploy, { branch: 'next' })).body.result).toBeDefined();
    expect(agent.requests).toHaveLength(1);
    await undo();
  });

  it('abuse 17 no header of the caller reaches the agent', async () => {
    const headers = {
      'x-upstream-authorization': 'Bearer smuggled',
      'proxy-authorization': 'Basic smuggled',
      'x-agent-key': 'smuggled',
      cookie: 'session=smuggled',
      'x-forwarded-for': '198.51.100.7',
      'x-custom': 'smuggled',
      'a2a-version': '9.9',
      'user-agent': 'smuggled',
    };
    const { body } = await post(deploy, { plain: 1 }, headers);
    const seen = body.result.structuredContent.headers;
    expect(JSON.stringify(seen)).not.toContain('smuggled');
    expect(JSON.stringify(seen)).not.toContain(bob);
    expect(seen.authorization).toBeUndefined();
    expect(seen['x-forwarded-for']).toBeUndefined();
    expect(seen['x-agent-key']).toBe('[redacted]'); // which replaces the credential of the agent, and no other text
    expect(Object.keys(seen).sort()).toEqual([
      'accept',
      'accept-encoding',
      'connection',
      'content-length',
      'content-type',
      'host',
      'traceparent',
      'user-agent',
      'x-agent-key',
      'x-rialto-depth',
      'x-rialto-lineage',
    ]);
  });

  it('D9 each hop counts; the fourth is refused', async () => {
    for (const depth of [undefined, '0', '1', '2']) {
      const { body } = await post(deploy, {}, depth === undefined ? {} : { 'x-rialto-depth': depth });
      expect(body.result.structuredContent.headers['x-rialto-depth']).toBe(String(Number(depth ?? 0) + 1));
    }
    const sent = agent.requests.length;
    for (const depth of ['3', '99', '-1', 'x', '1.5', '0x1', '1, 1', '100']) {
      const { body } = await post(deploy, {}, { 'x-rialto-depth': depth });
      expect([depth, body.error?.data.code]).toEqual([depth, 'loop_detected']);
    }
    expect(agent.requests.length).toBe(sent);
  });

  it('a trace continues at the agent, under a span of the gateway; an invalid one is replaced', async () => {
    const [traceId, spanId] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'];
    const given = await post(deploy, {}, { traceparent: `00-${traceId}-${spanId}-01` });
    const seen = given.body.result.structuredContent.headers.traceparent as string;
    expect(seen).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-0[01]$`));
    expect(seen).not.toContain(spanId);
    for (const broken of ['00-0-0-01', `00-${'0'.repeat(32)}-${spanId}-01`, 'x']) {
      const { body } = await post(deploy, {}, { traceparent: broken });
      const made = body.result.structuredContent.headers.traceparent as string;
      expect(made).toMatch(/^00-(?!0{32})[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/);
    }
  });

  it('a removed agent’s tools are gone, a viewer calls nothing', async () => {
    const viewer = await gateway.tokenOf('default', 'eve', 'viewer');
    expect((await post(deploy, {}, {}, viewer)).body.error.code).toBe(-32003);
    const other = await startStubAgent({ name: 'Short lived' });
    const { body } = await gateway.call('POST', '/api/a2a/agents', { url: other.url });
    expect((await post('short_lived.work')).body.result).toBeDefined();
    await gateway.call('DELETE', `/api/a2a/agents/${body.id}`);
    expect((await post('short_lived.work')).body.error.code).toBe(-32602);
    await other.close();
  });
});
