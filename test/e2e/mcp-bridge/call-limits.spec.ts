import { loadSettings } from '../../../src/platform/config/settings.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startSdkGrpcAgent } from '../../support/stubs/sdk-agents.js';
import { startStubAgent, type StubAgentOptions } from '../../support/stubs/stub-agent.js';
import { ask, asyncTask, data, failed, never, sequence, slow, state } from '../../support/stubs/stub-behaviours.js';
import { hang, wrongEnvelope } from '../../support/stubs/stub-hostile.js';

const deploymentMs = 500;

describe('MCP tools/call: time and tasks', () => {
  let gateway: TestGateway;
  const open: { close(): Promise<void> }[] = [];
  let count = 0;

  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_TOOL_TIMEOUT_MS: String(deploymentMs) });
  });
  afterAll(async () => {
    await gateway.close();
    await Promise.all(open.map((one) => one.close()));
  });

  /** Registers a stub agent and returns it with functions that call it. */
  const stub = async (options: StubAgentOptions, more: object = { timeoutMs: 20_000 }, token?: string) => {
    count += 1;
    const agent = await startStubAgent({ card: 'v03', name: `Agent ${count}`, ...options });
    open.push(agent);
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url, ...more }, token);
    const name = `agent_${count}.work`;
    return { agent, call: () => gateway.rpc('tools/call', { name, arguments: {} }, token) };
  };
  const codeOf = (reply: any) => reply.error?.code ?? reply.result.structuredContent;

  it('RE-25 uses the timeout of the deployment, by default 30 s', async () => {
    expect(loadSettings({ NODE_ENV: 'test', DATABASE_URL: 'postgres://h/d' }).RIALTO_TOOL_TIMEOUT_MS).toBe(30_000);
    const { call } = await stub({ behaviour: slow(10_000, data({ late: true })) }, {});
    const before = Date.now();
    expect(codeOf(await call())).toBe(-32201);
    expect(Date.now() - before).toBeGreaterThanOrEqual(deploymentMs - 50);
  });

  it('RE-26 D7 an org has its own timeout; the timeout of an agent has priority', async () => {
    const alice = await gateway.tokenOf('slow-org', 'alice', 'admin');
    const bob = await gateway.tokenOf('other-org', 'bob', 'admin');
    const behaviour = slow(deploymentMs + 400, data({ late: true }));
    const [inA, inB] = [await stub({ behaviour }, {}, alice), await stub({ behaviour }, {}, bob)];
    const own = await stub({ behaviour: hang }, { timeoutMs: 150 }, alice);
    await gateway.call('PATCH', '/api/orgs/slow-org', { toolTimeoutMs: 20_000 });
    const replies = await Promise.all([inA.call(), inB.call(), own.call()]);
    expect(replies.map(codeOf)).toEqual([{ late: true }, -32201, -32201]);
    await gateway.call('PATCH', '/api/orgs/slow-org', { toolTimeoutMs: 200 });
    expect(codeOf(await inA.call())).toBe(-32201);
    await gateway.call('PATCH', '/api/orgs/slow-org', { toolTimeoutMs: null });
    expect(codeOf(await inA.call())).toBe(-32201);
  });

  describe.each<[string, StubAgentOptions]>([
    ['v0.3 JSON-RPC', { card: 'v03' }],
    ['v1.0 JSON-RPC', { card: 'v1' }],
    ['v1.0 REST', { card: 'v1', speaks: ['v1-rest'] }],
    ['v0.3 REST', { card: 'v03', speaks: ['v03-rest'] }],
  ])('tasks of a %s agent', (_, options) => {
    it('a working task is polled until it is settled', async () => {
      const { agent, call } = await stub({ ...options, behaviour: asyncTask(2, data({ done: true })) });
      expect(codeOf(await call())).toEqual({ done: true });
      expect(agent.requests.map(({ operation }) => operation)).toEqual(['send', 'get', 'get']);
    });

    it('RE-24 a task that fails later is -32204 with its id', async () => {
      const { call } = await stub({ ...options, behaviour: asyncTask(1, failed('too late')) });
      const { error } = await call();
      expect([error.code, error.data.state, error.data.taskId]).toEqual([-32204, 'failed', 'stub-task-1']);
      expect(error.message).toContain('too late');
    });

    it('a question is a result that names the task', async () => {
      const { call } = await stub({ ...options, behaviour: ask('Which branch?') });
      const { result } = await call();
      expect(result.structuredContent).toMatchObject({
        taskId: 'stub-task-1',
        contextId: 'context-of-stub-task-1',
        state: 'input-required',
        message: 'Which branch?',
      });
    });

    it('RE-27 D7 at the deadline a known task continues as a task of the gateway', async () => {
      const { agent, call } = await stub({ ...options, behaviour: never }, { timeoutMs: 3_000 });
      const { result } = await call();
      expect(result).toMatchObject({ structuredContent: { taskId: expect.any(String), state: 'working' } });
      expect(result.isError).toBeUndefined();
      const { taskId } = result.structuredContent;
      expect((await gateway.call('GET', `/api/a2a/tasks/${taskId}`)).body).toMatchObject({ state: 'working' });
      expect(agent.cancels).toEqual([]);
      await gateway.call('POST', `/api/a2a/tasks/${taskId}/cancel`);
      expect(await agent.waitForCancels()).toEqual(['stub-task-1']);
    });
  });

  it('RE-27 a task of a gRPC agent is canceled too', async () => {
    const agent = await startSdkGrpcAgent();
    open.push(agent);
    const { body } = await gateway.call('POST', '/api/a2a/agents', { url: agent.url, timeoutMs: 700 });
    const tool = body.skills.find(({ id }: { id: string }) => id === 'slow').toolName as string;
    const { error } = await gateway.rpc('tools/call', { name: tool, arguments: { ms: 600_000 } });
    expect(error.code).toBe(-32201);
  });

  it('F29 an unknown state is not an end, and a missing id is not fatal: the task is polled again', async () => {
    const { agent, call } = await stub({ behaviour: state('pondering') });
    agent.set(sequence(state('pondering'), state('working'), data({ done: 1 })), 'get');
    expect(codeOf(await call())).toEqual({ done: 1 });
  });

  it('F32 the first end counts', async () => {
    const { agent, call } = await stub({ behaviour: data({ first: true }) });
    agent.set(failed('no, it failed'), 'get');
    expect(codeOf(await call())).toEqual({ first: true });
    expect(agent.requests.map(({ operation }) => operation)).toEqual(['send']);
  });

  it('F29 a poll that is answered with another task is -32203', async () => {
    const { agent, call } = await stub({ behaviour: state('working') });
    agent.set(wrongEnvelope('task-of-another-request'), 'get');
    const { error } = await call();
    expect([error.code, error.data.taskId]).toEqual([-32203, 'stub-task-1']);
  });

  it('F31 a failed poll is repeated, a lost task is reported', async () => {
    const flaky = await stub({ behaviour: state('working') });
    flaky.agent.set(
      sequence(
        (it) => it.send(503, ''),
        (it) => it.cutOff('reset'),
        data({ back: 1 }),
      ),
      'get',
    );
    expect(codeOf(await flaky.call())).toEqual({ back: 1 });
    const lost = await stub({ behaviour: state('working') });
    lost.agent.set((it) => it.error(-32001, 'Task not found'), 'get');
    const { error } = await lost.call();
    expect([error.code, error.data.remoteCode, error.data.taskId]).toEqual([-32204, -32001, 'stub-task-1']);
  });

  it('RE-25 many slow concurrent calls each end at their own limit', async () => {
    const { agent, call } = await stub({ behaviour: hang }, { timeoutMs: 2_000 });
    const replies = await Promise.all(Array.from({ length: 30 }, () => call()));
    expect(replies.map(codeOf)).toEqual(Array(30).fill(-32201));
    expect(agent.requests).toHaveLength(30);
    await agent.idle();
  });
});
