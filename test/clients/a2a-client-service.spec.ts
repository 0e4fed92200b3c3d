import { createSecretKey } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { ToolLimits } from '../../src/policy/tool-limits.js';
import { A2AClientService } from '../../src/a2a-client/a2a-client.service.js';
import type { SkillCall } from '../../src/a2a-client/remote-call.types.js';
import { AgentOperations } from '../../src/a2a-client/requests/agent-operations.js';
import { RemoteAgents } from '../../src/a2a-client/requests/remote-agents.js';
import { RemoteCredentials } from '../../src/a2a-client/requests/remote-credentials.js';
import { Delegation } from '../../src/a2a-client/requests/delegation.js';
import { LineageSeal } from '../../src/platform/secrets/lineage.js';
import { BridgeTransport } from '../../src/a2a-client/transports/bridge.transport.js';
import { SdkTransport } from '../../src/a2a-client/transports/sdk.transport.js';
import type { CallContext } from '../../src/kernel/call-context.js';
import type { OrgId } from '../../src/kernel/ids.js';
import { VerbBus, type VerbEvent } from '../../src/kernel/verb-bus.js';
import { createInMemoryVerbBus } from '../../src/mcp-bridge/testing.js';
import { parseAllowList } from '../../src/platform/http/outbound/address.js';
import { Tracing } from '../../src/platform/telemetry/tracing.js';
import { normaliseCard } from '../../src/protocol/a2a/card/card.js';
import { toolOutput } from '../../src/protocol/a2a/remote/bridge-call.js';
import type { AgentCredentials } from '../../src/registry/agent-credentials.js';
import type { AgentRecheck } from '../../src/registry/agent-recheck.js';
import type { RegisteredAgent } from '../../src/registry/registry.types.js';
import { closeOpened, closing, stub } from '../support/clients/bridge.js';
import { client, failure } from '../support/clients/outbound.js';
import { startSdkGrpcAgent } from '../support/stubs/sdk-agents.js';
import * as does from '../support/stubs/stub-behaviours.js';
import * as hostile from '../support/stubs/stub-hostile.js';

afterEach(closeOpened);

const ctx: CallContext = {
  org: { id: 'org-1' as OrgId, slug: 'acme' },
  principal: { kind: 'user', id: 'bob', role: 'member', groups: [] },
  surface: 'mcp',
  requestId: 'request-1',
  depth: 1,
  trace: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), sampled: true, state: 'vendor=secret' },
};

function setUpClient(verbs = createInMemoryVerbBus()) {
  const events: VerbEvent[] = [];
  const rechecked: string[] = [];
  verbs.subscribe((event) => void events.push(event));
  const fetch = client();
  const sdk = closing(new SdkTransport(fetch, { allow: parseAllowList('127.0.0.0/8'), httpsOnly: false }));
  const sealed = { openCredential: () => ({ type: 'bearer', token: 'own-token' }) } as unknown as AgentCredentials;
  const recheck = { soon: ({ id }: { id: string }) => void rechecked.push(id) } as unknown as AgentRecheck;
  const seal = new LineageSeal(createSecretKey(Buffer.alloc(32)));
  const delegation = new Delegation(seal, { A2A_CONTINUATION_MAX_REMOTE_WORK_MS: 600_000 });
  const agents = new RemoteAgents(sealed, new RemoteCredentials(fetch), new Tracing(), recheck, delegation);
  const operations = new AgentOperations(verbs, agents, fetch);
  const unlimited = {
    countToolCall: () => Promise.resolve(),
    around: (_ctx: unknown, _callee: string, call: () => unknown) => call(),
  } as unknown as ToolLimits;
  const service = new A2AClientService(operations, new BridgeTransport(fetch), sdk, fetch, unlimited);
  return { service, verbs, events, rechecked };
}

function registered({ url, card: raw }: { url: string; card: object }): RegisteredAgent {
  const read = normaliseCard(raw, { url });
  if (!read.ok) throw new Error(JSON.stringify(read.violations));
  const tools = [{ skillId: 'work', canonical: 'ops.work', alias: 'a2a_ops_work' }];
  return { row: { id: 'agent-1', slug: 'ops', url } as RegisteredAgent['row'], card: read.card, tools };
}

function skillCall(agent: { url: string; card: object }, more: Partial<SkillCall> = {}): SkillCall {
  const at = { agent: registered(agent), skillId: 'work', verb: 'ops.work', sessionId: 'a2a-agent-1-work-1' };
  return { ...at, args: { a: 1 }, timeoutMs: 10_000, ...more };
}

const params = { message: { messageId: 'm-1', role: 'ROLE_USER', parts: [{ text: 'hi' }] } } as const;
const message = { message: { ...params.message, parts: [...params.message.parts] } };

describe('A2AClientService', () => {
  it('RE-16, RE-20 invokes inside the verb; only trace and depth go one hop further (abuse 17)', async () => {
    const agent = await stub({ behaviour: does.data({ ok: true }) });
    const { service, events } = setUpClient();
    expect(toolOutput(await service.invokeSkill(ctx, skillCall(agent, { calledAs: 'a2a_ops_work' })))).toEqual({
      ok: true,
    });
    const { headers } = agent.requests[0]!;
    expect(headers).toMatchObject({ authorization: 'Bearer own-token', 'x-rialto-depth': '2' });
    expect(headers.traceparent).toMatch(/^00-a{32}-(?!b{16})[0-9a-f]{16}-01$/);
    expect(headers.tracestate).toBeUndefined();
    expect(events.map(({ phase, action, verb }) => [phase, action, verb])).toEqual([
      ['pre-verb', 'a2a_invoke', 'ops.work'],
      ['post-verb', 'a2a_invoke', 'ops.work'],
    ]);
    expect(events[0]).toMatchObject({
      legacyAlias: 'a2a_ops_work',
      calledAs: 'a2a_ops_work',
      skillId: 'work',
      sessionId: 'a2a-agent-1-work-1',
      args: { a: 1 },
    });
  });

  it('RE-31 a denied call sends nothing, by any method', async () => {
    const agent = await stub();
    const { service, verbs } = setUpClient();
    verbs.subscribe(({ phase }) => {
      if (phase === 'pre-verb') throw new Error('no');
    });
    const call = skillCall(agent);
    const works: (() => Promise<unknown>)[] = [
      () => service.invokeSkill(ctx, call),
      () => service.send(ctx, { ...call, params: message }),
      () => service.stream(ctx, { ...call, params: message }).next(),
      () => service.cancel(ctx, { ...call, taskId: 't' }),
    ];
    for (const work of works) expect((await failure(work())).code).toBe('denied');
    expect(agent.requests).toHaveLength(0);
  });

  it('RE-31 a poll needs the same permission as the call, and is not an act', async () => {
    const agent = await stub();
    const bus = new VerbBus({ decider: () => ({ allowed: false, policies: [], reason: 'no' }) });
    const { service: denied } = setUpClient(bus);
    const call = { ...skillCall(agent), taskId: 't' };
    expect((await failure(denied.getTask(ctx, call))).code).toBe('denied');
    expect((await failure(denied.subscribe(ctx, call).next())).code).toBe('denied');
    expect(agent.requests).toHaveLength(0);
    const { service, events } = setUpClient();
    expect((await failure(service.getTask(ctx, call))).code).toBe('remote_error');
    expect(events).toEqual([]);
  });

  it('RE-28 an agent that cannot be reached is checked again; one that fails a task is not', async () => {
    const agent = await stub({ behaviour: does.failed('no') });
    const { service, rechecked } = setUpClient();
    expect((await failure(service.invokeSkill(ctx, skillCall(agent)))).code).toBe('remote_task_failed');
    expect(rechecked).toEqual([]);
    await agent.down();
    expect((await failure(service.invokeSkill(ctx, skillCall(agent)))).code).toBe('remote_transport');
    expect(rechecked).toEqual(['agent-1']);
  });

  it('(P2, R3) reports which agent was not reached and why, and only when no request can have arrived', async () => {
    const agent = await stub({ behaviour: hostile.resetAtOnce });
    const { service } = setUpClient();
    const fails = async () => {
      const { code, message: text, data } = await failure(service.invokeSkill(ctx, skillCall(agent)));
      return [code, text, data];
    };
    expect(await fails()).toEqual([
      'remote_transport',
      'the agent "ops" did not answer: the connection broke off',
      { reason: 'broken', ambiguous: true },
    ]);
    await agent.down();
    expect(await fails()).toEqual([
      'remote_transport',
      'the agent "ops" could not be reached: the connection was refused',
      { reason: 'refused' },
    ]);
  });

  it('RE-26 one deadline covers the decision and the hop', async () => {
    const agent = await stub({ behaviour: hostile.hang });
    const { service, verbs } = setUpClient();
    const [timeoutMs, ends]: [number, string[]] = [1_500, []];
    let afresh: Promise<unknown> | undefined;
    verbs.subscribe(async ({ phase }) => {
      if (phase !== 'pre-verb') return;
      await wait(500);
      afresh = wait(timeoutMs).then(() => ends.push('a deadline that began after the decision'));
    });
    const call = service.invokeSkill(ctx, skillCall(agent, { timeoutMs }));
    ends.push((await failure(call)).code);
    await afresh;
    expect(ends).toEqual(['remote_timeout', 'a deadline that began after the decision']);
  });

  it('invokes agents without JSON-RPC over the SDK, with the same results', async () => {
    const { service } = setUpClient();
    for (const card of ['v1', 'v03'] as const) {
      const agent = await stub({ card, speaks: [`${card}-rest`], behaviour: does.asyncTask(2, does.data({ n: 1 })) });
      expect(toolOutput(await service.invokeSkill(ctx, skillCall(agent)))).toEqual({ n: 1 });
      agent.set(does.failed('quota'));
      const error = await failure(service.invokeSkill(ctx, skillCall(agent)));
      expect([error.code, error.message]).toEqual(['remote_task_failed', 'quota']);
      agent.set(does.never);
      const late = await failure(service.invokeSkill(ctx, skillCall(agent, { timeoutMs: 2_000 })));
      expect([late.code, late.data?.taskId]).toEqual(['remote_timeout', 'stub-task-3']);
      expect(await agent.waitForCancels()).toEqual(['stub-task-3']);
    }
    const grpc = closing(await startSdkGrpcAgent());
    const answer = toolOutput(await service.invokeSkill(ctx, skillCall(grpc, { skillId: 'echo' })));
    expect(answer).toEqual({ received: { a: 1 }, skillId: 'echo' });
  });

  it('sends, streams, reads and cancels with values that do not depend on the version', async () => {
    const { service, events } = setUpClient();
    for (const card of ['v1', 'v03'] as const) {
      const agent = await stub({ card, behaviour: does.never });
      const call = skillCall(agent);
      const reply = (await service.send(ctx, { ...call, params: message })) as { task: { id: string } };
      expect(reply).toMatchObject({ task: { status: { state: 'TASK_STATE_WORKING' } } });
      const taskId = reply.task.id;
      expect(await service.getTask(ctx, { ...call, taskId })).toMatchObject({ id: taskId });
      expect(await service.cancel(ctx, { ...call, taskId })).toMatchObject({
        status: { state: 'TASK_STATE_CANCELED' },
      });
      agent.set(does.stream([{ task: 'working' }, { status: 'completed' }]));
      const states: unknown[] = [];
      for await (const event of service.stream(ctx, { ...call, params: message })) states.push(Object.keys(event)[0]);
      expect(states).toEqual(['task', 'statusUpdate']);
    }
    expect(new Set(events.map(({ action }) => action))).toEqual(new Set(['a2a_invoke', 'a2a_cancel']));
  });
});
