import { VerbBus } from '../../../src/kernel/verb-bus.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent, type StubAgentOptions } from '../../support/stubs/stub-agent.js';
import { data, failed, text } from '../../support/stubs/stub-behaviours.js';

describe('dispatch: steps of workflows', () => {
  let gateway: TestGateway;
  const stubs: StubAgent[] = [];
  const ids: Record<string, string> = {};

  /** Registers an agent of the default org under its slug. */
  async function agent(slug: string, options: StubAgentOptions = {}, token?: string): Promise<StubAgent> {
    const started = await startStubAgent({ name: slug, ...options });
    stubs.push(started);
    const { body } = await gateway.call('POST', '/api/a2a/agents', { url: started.url, slug }, token);
    ids[slug] = body.id as string;
    return started;
  }

  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_CARD_REFRESH_SECONDS: '86400' });
  });
  afterAll(async () => {
    await gateway.close();
    await Promise.all(stubs.map((stub) => stub.close()));
  });

  const post = (path: string, body: unknown, token?: string | null) =>
    gateway.call('POST', `/api/a2a/${path}`, body, token);
  const received = (stub: StubAgent) => stub.requests.map(({ json }) => (json as any).params.message.parts[0].data);

  describe('RE-47 agent.invoke', () => {
    let stub: StubAgent;
    beforeAll(async () => {
      const inputSchema = { type: 'object', properties: { projectId: { type: 'string' } }, required: ['projectId'] };
      stub = await agent('stub_data', { skills: [{ id: 'deploy', inputSchema }, { id: 'look' }], costPerTask: 2 });
      stub.set(data({ deployed: true }));
    });
    beforeEach(() => void (stub.requests.length = 0));

    it('E17 accepts a workflow node with the step as its config', async () => {
      const config = { agentCardId: 'stub_data', skillId: 'deploy', args: { projectId: '{{trigger.project}}' } };
      const node = { id: 'step-1', type: 'action', nodeId: 'agent.invoke', config, context };
      expect(await post('invoke', node)).toMatchObject({ status: 200, body: { output: { deployed: true } } });
      expect(received(stub)).toEqual([{ projectId: 'shop' }]);
      for (const [wrong, field] of [
        [{ ...node, config: { agentCardId: 'stub_data' } }, 'config.skillId'],
        [{ ...node, args: {} }, ''],
        [{ ...node, config: 'deploy' }, 'config'],
      ] as const)
        expect((await post('invoke', wrong)).body).toMatchObject({ status: 400, violations: [{ field }] });
    });

    const context = { trigger: { project: 'shop', retries: 3, env: { region: 'eu' } }, agents: ['stub_data'] };

    it('fills the templates of a step and calls the named skill', async () => {
      const args = {
        projectId: '{{trigger.project}}',
        note: 'try {{trigger.retries}}',
        retries: '{{trigger.retries}}',
        env: ['{{trigger.env}}'],
      };
      const { status, body } = await post('invoke', { agentCardId: ids.stub_data, skillId: 'deploy', args, context });
      expect([status, body]).toEqual([
        200,
        {
          dispatchId: expect.any(String),
          agent: { id: ids.stub_data, slug: 'stub_data', name: 'stub_data' },
          skillId: 'deploy',
          taskId: expect.stringMatching(/^stub-task-/),
          output: { deployed: true },
          chosen: null,
        },
      ]);
      expect(received(stub)).toEqual([{ projectId: 'shop', note: 'try 3', retries: 3, env: [{ region: 'eu' }] }]);
    });

    it('accepts templates for agent and skill too, and the agent by its slug', async () => {
      const step = { agentCardId: '{{agents[0]}}', skillId: '{{skill}}', context: { ...context, skill: 'look' } };
      expect((await post('invoke', step)).body).toMatchObject({ skillId: 'look', agent: { slug: 'stub_data' } });
      expect(received(stub)).toEqual([{}]);
    });

    it.each([
      ['a path without a value', { args: { projectId: '{{trigger.absent}}' } }, 'args.projectId'],
      ['no context', { args: { projectId: '{{trigger.project}}' }, context: undefined }, 'args.projectId'],
      ['the prototype', { args: { projectId: '{{trigger.constructor.name}}' } }, 'args.projectId'],
      ['an agent that is not a text', { agentCardId: '{{trigger.env}}' }, 'agentCardId'],
      [
        'arguments that do not fit the schema after the templates are filled',
        { args: { projectId: '{{trigger.retries}}' } },
        '/projectId',
      ],
      ['arguments that are missing', { args: {} }, ''],
      ['an unknown member', { unknown: 1 }, ''],
    ])('refuses %s and calls no agent', async (_what, wrong, field) => {
      const { status, body } = await post('invoke', {
        agentCardId: 'stub_data',
        skillId: 'deploy',
        args: { projectId: 'x' },
        context,
        ...wrong,
      });
      expect([status, body.code]).toEqual([400, 'invalid_params']);
      expect(body.violations[0].field).toBe(field);
      expect(stub.requests).toEqual([]);
    });

    it('names a missing agent or skill, but only of visible agents', async () => {
      const hidden = 'forbid(principal == User::"nora", action == Action::"a2a_discover", resource);';
      await gateway.call('POST', '/api/policies', { name: 'hidden', text: hidden });
      const nora = await gateway.tokenOf('default', 'nora', 'admin');
      for (const [agentCardId, token, detail] of [
        ['absent', gateway.token, 'no such agent'],
        ['stub_data', gateway.token, 'the agent has no such skill'],
        ['stub_data', nora, 'no such agent'],
      ] as const)
        expect(await post('invoke', { agentCardId, skillId: 'absent' }, token)).toMatchObject({
          status: 404,
          body: { code: 'not_found', detail },
        });
    });

    it('gives the same answer for a missing agent and a denied one', async () => {
      const denied = 'forbid(principal == User::"mallory", action == Action::"a2a_invoke", resource);';
      await gateway.call('POST', '/api/policies', { name: 'not-mallory', text: denied });
      const mallory = await gateway.tokenOf('default', 'mallory');
      const answers = await Promise.all(
        ['stub_data', 'absent'].map((agentCardId) => post('invoke', { agentCardId, skillId: 'deploy' }, mallory)),
      );
      for (const { status, body } of answers) expect([status, body.policies]).toEqual([403, ['not-mallory']]);
      expect(stub.requests).toEqual([]);
    });

    it('reports a failure with the agent and its message', async () => {
      stub.set(failed('no such branch'));
      const { status, body } = await post('invoke', { agentCardId: 'stub_data', skillId: 'look' });
      stub.set(data({ deployed: true }));
      expect([status, body.code, body.detail, body.agent]).toEqual([
        502,
        'remote_task_failed',
        'no such branch',
        'stub_data',
      ]);
      const { body: list } = await gateway.call('GET', '/api/a2a/dispatches?status=failed&limit=1');
      expect(list.items[0]).toMatchObject({ dispatchId: body.dispatchId, errorCode: 'remote_task_failed' });
    });

    it('RE-35 does not send a step that a subscriber denies', async () => {
      const leave = gateway.gateway.get(VerbBus).subscribe((event) => {
        if (event.phase === 'pre-verb') event.context.denied = 'not today';
      });
      expect(await post('invoke', { agentCardId: 'stub_data', skillId: 'look' })).toMatchObject({ status: 403 });
      leave();
      expect(stub.requests).toEqual([]);
    });
  });

  describe('RE-48 RE-49 agent.dispatch', () => {
    let typescript: StubAgent;
    let python: StubAgent;
    beforeAll(async () => {
      const skill = (tag: string) => ({ id: 'review', description: 'Reviews code', tags: ['code-review', tag] });
      typescript = await agent('ts_reviewer', { skills: [{ id: 'greet' }, skill('typescript')] });
      python = await agent('py_reviewer', { skills: [skill('python')] });
      typescript.set(text('looks good'));
    });
    beforeEach(() => void (typescript.requests.length = python.requests.length = 0));

    const work = { workType: 'code-review', description: 'Review this pull request', requiredSkills: ['typescript'] };

    it('calls the only agent with the required skills, with the work', async () => {
      const { status, body } = await post('dispatch', work);
      expect(status).toBe(200);
      expect(body).toMatchObject({
        agent: { slug: 'ts_reviewer' },
        skillId: 'review',
        output: 'looks good',
        chosen: { seed: expect.any(Number), score: expect.any(Number) },
      });
      expect(received(typescript)).toEqual([work]);
      expect(python.requests).toEqual([]);
    });

    it('sends the given arguments, with filled templates', async () => {
      const context = { pr: { id: 7 }, lang: 'typescript' };
      await post('dispatch', { ...work, requiredSkills: ['{{lang}}'], args: { pr: '{{pr.id}}' }, context });
      expect(received(typescript)).toEqual([{ pr: 7 }]);
    });

    it('RE-73 returns an error with a reason for each agent when no agent is left', async () => {
      const { status, body } = await post('dispatch', { ...work, requiredSkills: ['typescript', 'cobol', 'fortran'] });
      expect([status, body.code, body.type]).toEqual([422, 'no_agent', 'urn:rialto:problem:no_agent']);
      expect(body.excluded).toContainEqual({ agent: 'ts_reviewer', reason: 'it lacks the skills: cobol, fortran' });
      expect(body.excluded).toContainEqual({
        agent: 'py_reviewer',
        reason: 'it lacks the skills: typescript, cobol, fortran',
      });
      expect(body.considered).toBe(body.excluded.length);
      expect([...typescript.requests, ...python.requests]).toEqual([]);
    });

    it('excludes an agent that a policy forbids to call, with the reason, and names no hidden agents', async () => {
      const save = async (name: string, action: string, resource: string) =>
        gateway.call('POST', '/api/policies', {
          name,
          text: `forbid(principal == User::"eve", action == Action::"${action}", resource ${resource});`,
        });
      const eve = await gateway.tokenOf('default', 'eve');
      const wish = { ...work, requiredSkills: ['code-review'] };
      await save('no-ts', 'a2a_invoke', '== Skill::"ts_reviewer.review"');
      for (let seed = 0; seed < 10; seed++)
        expect((await post('dispatch', { ...wish, seed }, eve)).body.agent.slug).toBe('py_reviewer');
      const denied = await post('dispatch', work, eve);
      expect(denied.body.excluded).toContainEqual({
        agent: 'ts_reviewer',
        reason: 'ts_reviewer.review may not be called: forbidden by policy "no-ts"',
      });
      await save('no-py', 'a2a_discover', '== A2AAgent::"py_reviewer"');
      python.requests.length = 0;
      const hidden = [await post('dispatch', wish, eve), await post('dispatch/explain', wish, eve)];
      expect(hidden.map(({ status }) => status)).toEqual([422, 200]);
      expect(JSON.stringify(hidden.map(({ body }) => body))).toMatch(/ts_reviewer/);
      expect(JSON.stringify(hidden.map(({ body }) => body))).not.toMatch(/py_reviewer/);
      expect(hidden[1]!.body.chosen).toBeNull();
      expect(python.requests).toEqual([]);
    });

    it('evaluates policies with the sent arguments', async () => {
      const when = 'when { context.input.hasTag("env") && context.input.getTag("env") == "prod" }';
      const forbid = `forbid(principal == User::"ann", action == Action::"a2a_invoke", resource) ${when};`;
      await gateway.call('POST', '/api/policies', { name: 'no-prod', text: forbid });
      const ann = await gateway.tokenOf('default', 'ann');
      expect((await post('dispatch', { ...work, args: { env: 'test' } }, ann)).status).toBe(200);
      expect((await post('dispatch', { ...work, args: { env: 'prod' } }, ann)).body.code).toBe('no_agent');
    });

    it('does not send arguments that do not fit the schema of the skill', async () => {
      const inputSchema = { type: 'object', required: ['sql'] };
      const strict = await agent('strict', { skills: [{ id: 'query', tags: ['sql'], inputSchema }] });
      const wish = { workType: 'sql', requiredSkills: ['sql'] };
      expect((await post('dispatch', wish)).body.excluded).toContainEqual({
        agent: 'strict',
        reason: 'the arguments do not fit the input schema of strict.query',
      });
      expect(strict.requests).toEqual([]);
      expect((await post('dispatch', { ...wish, args: { sql: 'select 1' } })).status).toBe(200);
    });

    it('never chooses an agent that is quarantined, unreachable or without a card', async () => {
      const gone = await agent('gone', { skills: [{ id: 'rare' }] });
      const wish = { workType: 'rare', requiredSkills: ['rare'] };
      const reason = async () =>
        (await post('dispatch', wish)).body.excluded?.find((one: { agent: string }) => one.agent === 'gone')?.reason;
      const refetch = () => gateway.call('POST', '/api/a2a/agents/gone/refetch');
      await gone.down();
      await refetch();
      expect(await reason()).toBe('it is unreachable');
      await gone.up();
      await refetch();
      expect((await post('dispatch', wish)).status).toBe(200);
      await gateway.sql(
        `update agent_cards set quarantined_at = now(), updated_at = clock_timestamp() where slug = 'gone'`,
      );
      await gateway.call('PATCH', '/api/a2a/agents/gone', { timeoutMs: 1_000 });
      expect(await reason()).toBe('its changed card waits for approval');
      await gateway.call('DELETE', '/api/a2a/agents/gone');
      expect(await reason()).toBeUndefined();
    });

    it('a second tenant has only its own agents', async () => {
      const globex = await gateway.tokenOf('globex', 'gina', 'admin');
      const { status, body } = await post('dispatch', work, globex);
      expect([status, body.code, body.excluded]).toEqual([422, 'no_agent', []]);
      expect((await post('invoke', { agentCardId: ids.ts_reviewer, skillId: 'review' }, globex)).status).toBe(404);
      expect((await post('dispatch/explain', work, globex)).body).toMatchObject({ chosen: null, candidates: [] });
      expect((await gateway.call('GET', '/api/a2a/dispatches', undefined, globex)).body.items).toEqual([]);
      expect([...typescript.requests, ...python.requests]).toEqual([]);
    });

    it('X2.1 answers quickly to arguments that look like secrets, of a viewer in an org without agents', async () => {
      const viewer = await gateway.tokenOf('globex', 'vic', 'viewer');
      const args = { x: '-eyJ'.repeat(200_000), [`${'passwd/'.repeat(20_000)}\n`]: 1 };
      expect(await post('dispatch', { workType: 'x', args }, viewer)).toMatchObject({ status: 422 });
    });

    it.each([
      [{ workType: '' }, 'workType'],
      [{ workType: 'x', costLimit: -1 }, 'costLimit'],
      [{ workType: 'x', seed: 1.5 }, 'seed'],
      [{ workType: 'x', seed: 2 ** 32 }, 'seed'],
      [{ workType: 'x', requiredSkills: 'typescript' }, 'requiredSkills'],
      [{ workType: 'x', args: [] }, 'args'],
      [{ workType: '{{nothing}}' }, 'workType'],
      [{ workType: '{{empty}}', context: { empty: ' ' } }, 'workType'],
    ])('refuses %j', async (wish, field) => {
      for (const path of ['dispatch', 'dispatch/explain']) {
        const { status, body } = await post(path, wish);
        expect([status, body.code, body.violations[0].field]).toEqual([400, 'invalid_params', field]);
      }
    });
  });
});
