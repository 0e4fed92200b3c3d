import { startExampleWorld, type ExampleWorld } from '../../support/documents/example-world.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { data } from '../../support/stubs/stub-behaviours.js';

const inputSchema = {
  type: 'object',
  properties: { projectId: { type: 'string' }, branch: { type: 'string' } },
  required: ['projectId'],
};

/* Runs the examples of Rensei's page on its bridge: tools, the request on the wire, workflow nodes, and its test. */
describe('the examples of Rensei', () => {
  let world: ExampleWorld;
  let ops: StubAgent;

  beforeAll(async () => {
    world = await startExampleWorld('rensei.example.com');
    const skills = [{ id: 'deploy', inputSchema, tags: ['deploy', 'vercel'] }];
    ops = await startStubAgent({ card: 'v03', name: 'Vercel Ops', skills, behaviour: data({ deployed: true }) });
    const registered = await post('/api/a2a/agents', JSON.stringify({ url: ops.url }));
    expect(registered).toMatchObject({ name: 'Vercel Ops', slug: 'vercel_ops' });
  });
  afterAll(async () => {
    await world.close();
    await ops.close();
  });

  const post = (path: string, body: string) =>
    world.json(
      `curl https://rensei.example.com${path} -H "Authorization: Bearer $TOKEN" \\
        -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -d '${body}'`,
    );
  const mcp = async (method: string, params: object, path = '/mcp') => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    return (await post(path, body)).result;
  };

  it('RE-05 RE-07 RE-11 RE-14 a skill is a tool with its own schema, under two names', async () => {
    const { tools } = await mcp('tools/list', {}, '/mcp?names=both');
    const found = tools.filter(({ name }: { name: string }) => /vercel_ops/.test(name));
    expect(found.map(({ name }: { name: string }) => name).sort()).toEqual([
      'a2a_vercel_ops_deploy',
      'vercel_ops.deploy',
    ]);
    for (const tool of found) expect(tool.inputSchema).toEqual(inputSchema);
    expect(found[0].description).toContain('deploy');
    expect(found[0].description).toContain('Vercel Ops');
  });

  it('RE-15 RE-17 RE-18 RE-19 RE-20 RE-21 a call is this request, and its data is the result', async () => {
    ops.requests.length = 0;
    const args = { projectId: 'p1', branch: 'main' };
    for (const name of ['vercel_ops.deploy', 'a2a_vercel_ops_deploy'])
      expect((await mcp('tools/call', { name, arguments: args })).structuredContent).toEqual({ deployed: true });
    expect(ops.requests).toHaveLength(2);
    for (const { method, path, headers, json } of ops.requests) {
      const { params } = json as { params: { correlationId: string } };
      expect([method, path, headers['content-type']]).toEqual(['POST', '/', 'application/json']);
      expect(json).toEqual({
        jsonrpc: '2.0',
        id: expect.any(Number),
        method: 'message/send',
        params: {
          message: {
            kind: 'message',
            role: 'user',
            messageId: expect.any(String),
            skill: { skillId: 'deploy' },
            parts: [{ kind: 'data', data: args }],
          },
          correlationId: expect.stringMatching(/^a2a-.+-deploy-/),
          taskId: params.correlationId,
        },
      });
    }
  });

  it('RE-47 the node agent.invoke of a workflow', async () => {
    const step = `{
      "id": "deploy-step",
      "type": "action",
      "nodeId": "agent.invoke",
      "config": {
        "agentCardId": "vercel_ops",
        "skillId": "deploy",
        "args": { "projectId": "{{trigger.projectId}}", "branch": "{{trigger.branch}}" }
      },
      "context": { "trigger": { "projectId": "p2", "branch": "next" } }
    }`;
    ops.requests.length = 0;
    expect((await post('/api/a2a/invoke', step)).output).toEqual({ deployed: true });
    const { params } = ops.requests[0]!.json as { params: { message: { parts: unknown } } };
    expect(params.message.parts).toEqual([{ kind: 'data', data: { projectId: 'p2', branch: 'next' } }]);
  });

  it('RE-48 the node agent.dispatch of a workflow', async () => {
    const step = `{
      "id": "dispatch-step",
      "type": "action",
      "nodeId": "agent.dispatch",
      "config": {
        "workType": "deploy",
        "description": "Deploy the shop",
        "requiredSkills": ["vercel"],
        "args": { "projectId": "p3" }
      }
    }`;
    expect(await post('/api/a2a/dispatch', step)).toMatchObject({
      agent: { slug: 'vercel_ops' },
      skillId: 'deploy',
      output: { deployed: true },
    });
  });

  it('RE-38 RE-50 RE-51 RE-52 the test of a tool, without a network', async () => {
    const printed = await world.typescript(`
      import { buildA2ASkillTool, createInMemoryVerbBus } from 'rialto/testing';

      const verbBus = createInMemoryVerbBus();
      const events: unknown[] = [];
      verbBus.subscribe((event) => {
        events.push(event);
      });

      const card = { name: 'Vercel Ops', url: 'https://ops.example.com', skills: [{ id: 'deploy' }] };
      const tool = buildA2ASkillTool({
        agentRow: { id: 'card-1', orgId: 'org-1', agentUrl: 'https://ops.example.com' },
        card,
        skill: card.skills[0]!,
        verbBus,
        fetcher: async () => ({
          status: 200,
          bodyText: JSON.stringify({
            jsonrpc: '2.0',
            id: 1,
            result: {
              id: 'task-1',
              status: { state: 'completed' },
              artifacts: [{ parts: [{ kind: 'data', data: { deploymentId: 'd1' } }] }],
            },
          }),
        }),
      });

      const output = await tool.handler({ projectId: 'p1' });
      console.log(JSON.stringify({ output, events }));
    `);
    const { output, events } = JSON.parse(printed);
    expect(output).toEqual({ deploymentId: 'd1' });
    const common = {
      verb: 'vercel_ops.deploy',
      legacyAlias: 'a2a_vercel_ops_deploy',
      orgId: 'org-1',
      agentCardId: 'card-1',
      agentUrl: 'https://ops.example.com',
      skillId: 'deploy',
      sessionId: expect.stringMatching(/^a2a-card-1-deploy-/),
      args: { projectId: 'p1' },
      emittedAt: expect.any(String),
    };
    expect(events).toMatchObject([
      { phase: 'pre-verb', ...common },
      { phase: 'post-verb', ...common, outcome: 'completed', durationMs: expect.any(Number) },
    ]);
  });

  it('RE-43 RE-44 RE-88 the tools of an MCP server of ones own', async () => {
    const printed = await world.typescript(`
      import { createInMemoryVerbBus, registerA2AAgentsAsMcpTools } from 'rialto/testing';

      const names: string[] = [];
      const server = {
        registerTool(name: string) {
          names.push(name);
        },
      };
      const options = {
        agents: [
          {
            agentRow: { id: 'card-1', orgId: 'org-1', agentUrl: 'https://ops.example.com' },
            card: { name: 'Vercel Ops', skills: [{ id: 'deploy' }] },
          },
        ],
        verbBus: createInMemoryVerbBus(),
        timeoutMs: 500,
      };
      registerA2AAgentsAsMcpTools(server, options);
      const { skipped } = registerA2AAgentsAsMcpTools(server, options);
      console.log(JSON.stringify({ names, skipped }));
    `);
    const names = ['vercel_ops.deploy', 'a2a_vercel_ops_deploy'];
    expect(JSON.parse(printed)).toEqual({ names, skipped: names });
  });
});
