import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';

describe('POST /api/policies/test', () => {
  let gateway: TestGateway;
  let agent: StubAgent;

  beforeAll(async () => {
    gateway = await startTestGateway();
    agent = await startStubAgent({ name: 'Vercel Ops', skills: [{ id: 'deploy' }] });
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url, trustLevel: 'untrusted' });
    await gateway.tokenOf('default', 'vera', 'viewer');
    const text = `forbid(principal, action == Action::"a2a_invoke", resource == Skill::"vercel_ops.deploy")
      when { context.input.hasTag("branch") && context.input.getTag("branch") == "main" };`;
    await gateway.call('POST', '/api/policies', { name: 'no-main', text });
  });

  afterAll(async () => {
    await gateway.close();
    await agent.close();
  });

  const ask = async (question: object) => (await gateway.call('POST', '/api/policies/test', question)).body;
  const deploy = { principal: 'User::"bob"', action: 'a2a_invoke', resource: 'Skill::"vercel_ops.deploy"' };

  it.each([
    ['a2a_invoke', 'Skill::"vercel_ops.deploy"'],
    ['a2a_discover', 'A2AAgent::"vercel_ops"'],
    ['a2a_cancel', 'Skill::"vercel_ops.deploy"'],
    ['task_submit', 'PublishedAgent::"echo"'],
    ['task_read', 'Task::"t1"'],
    ['task_cancel', 'Task::"t1"'],
    ['task_subscribe', 'Task::"t1"'],
    ['push_configure', 'Task::"t1"'],
    ['mcp_call', 'Tool::"files__read"'],
    ['mcp_read', 'Resource::"file:///a"'],
    ['mcp_prompt', 'Prompt::"files__sum"'],
    ['mcp_discover', 'McpServer::"files"'],
    ['admin_read', 'Org::"default"'],
  ])('RE-74 answers for %s on %s, for every kind of principal', async (action, resource) => {
    for (const principal of ['User::"bob"', 'A2AAgent::"vercel_ops"', 'Service::"ci"', 'Anonymous::"anonymous"'])
      expect(await ask({ principal, action, resource })).toMatchObject({
        decision: 'allow',
        policies: [expect.any(String)],
        reason: expect.stringContaining('permitted'),
        version: expect.any(String),
      });
    expect((await ask({ principal: 'User::"bob"', action: `Action::"${action}"`, resource })).decision).toBe('allow');
  });

  it('reads the input, as the example of the vocabulary does', async () => {
    expect(await ask({ ...deploy, input: { branch: 'main' } })).toMatchObject({
      decision: 'deny',
      policies: ['no-main'],
      reason: expect.stringContaining('no-main'),
    });
    expect(await ask({ ...deploy, input: { branch: 'next' } })).toMatchObject({ decision: 'allow' });
    expect(await ask(deploy)).toMatchObject({ decision: 'allow' });
  });

  it('knows the role of a member, and accepts another role and groups', async () => {
    const write = { action: 'admin_write', resource: 'Org::"default"' };
    expect(await ask({ ...write, principal: 'User::"vera"' })).toMatchObject({ decision: 'deny' });
    expect(await ask({ ...write, principal: 'User::"vera"', role: 'admin' })).toMatchObject({ decision: 'allow' });
    expect(await ask({ ...deploy, principal: 'User::"vera"' })).toMatchObject({
      policies: ['rialto:viewers-only-read'],
    });
    const text = 'forbid(principal in Group::"ops", action, resource);';
    expect(await ask({ ...deploy, text })).toMatchObject({ decision: 'allow' });
    expect(await ask({ ...deploy, text, groups: ['ops'] })).toMatchObject({ decision: 'deny', policies: ['tested'] });
  });

  it('knows the trust level of a registered agent, as callee and as caller', async () => {
    const callee =
      'forbid(principal, action == Action::"a2a_invoke", resource) when { resource.agent.trustLevel == "untrusted" };';
    expect(await ask({ ...deploy, text: callee })).toMatchObject({ decision: 'deny', policies: ['tested'] });
    const caller =
      'forbid(principal is A2AAgent, action, resource) ' +
      'when { principal has trustLevel && principal.trustLevel == "untrusted" };';
    expect(await ask({ ...deploy, principal: 'A2AAgent::"vercel_ops"', text: caller })).toMatchObject({
      decision: 'deny',
    });
  });

  it('stores nothing and refuses invalid questions', async () => {
    const before = (await gateway.call('GET', '/api/policies')).body;
    const bad = [
      { ...deploy, principal: 'bob' },
      { ...deploy, resource: 'Skill::' },
      { ...deploy, action: 'Action::"' },
      { ...deploy, action: 'fly' },
      { ...deploy, principal: 'Org::"x"' },
      { ...deploy, unknown: 1 },
      { principal: deploy.principal },
    ];
    for (const question of bad) expect((await ask(question)).status).toBe(400);
    expect(await ask({ ...deploy, text: 'permit(' })).toMatchObject({ status: 422, code: 'policy_invalid' });
    expect(await ask({ ...deploy, resource: 'Org::"default"' })).toMatchObject({ decision: 'deny' });
    expect((await gateway.call('GET', '/api/policies')).body).toEqual(before);
    expect(agent.requests).toHaveLength(0);
  });
});
