import {
  clientKinds,
  connectLegacySdk,
  connectMcp,
  connectSdk,
  modernRequest,
} from '../../support/clients/mcp-clients.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { openEvents } from '../../support/clients/mcp-events.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { data, never } from '../../support/stubs/stub-behaviours.js';
import { hang } from '../../support/stubs/stub-hostile.js';

const streams = { accept: 'application/json, text/event-stream' };

describe('MCP tools/call: progress and cancellation', () => {
  let one: TestGateway;
  let two: TestGateway;
  let agent: StubAgent;
  let agentId: string;

  beforeAll(async () => {
    one = await startTestGateway();
    two = await startTestGateway({}, one);
    agent = await startStubAgent({ card: 'v03', name: 'Patient' });
    agentId = (await one.call('POST', '/api/a2a/agents', { url: agent.url })).body.id;
  });
  afterAll(async () => {
    await two.close();
    await one.close();
    await agent.close();
  });
  beforeEach(() => {
    agent.requests.length = 0;
    agent.cancels.length = 0;
  });

  const tool = { name: 'patient.work', arguments: {} };
  const callOf = (id: number | bigint | string, meta?: object) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { ...tool, ...(meta && { _meta: meta }) },
  });
  const initialize = async () => {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } };
    const { headers } = await one.call('POST', '/mcp', { jsonrpc: '2.0', id: 0, method: 'initialize', params });
    return { 'mcp-session-id': headers.get('mcp-session-id')! };
  };
  const cancel = (requestId: unknown) => ({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } });
  const outcomes = async () =>
    (await one.sql('select successes::int, failures::int from agent_outcomes where agent_id = $1', [agentId]))[0];
  /** Makes the agent answer when `event` resolves. */
  const answerOn = (event: Promise<unknown>) =>
    agent.set(async (it) => {
      await Promise.race([event, it.untilGone()]);
      if (!it.gone.aborted) await data({ ok: true })(it);
    });

  it.each(clientKinds)('a client that sent a token gets progress during the call: %s', async (kind) => {
    const client = await connectMcp(kind, `${one.url}/mcp`, one.token);
    const seen: { progress: number; message?: string }[] = [];
    let notified: () => void = () => undefined;
    answerOn(new Promise<void>((resolve) => (notified = resolve)));
    const onprogress = (progress: { progress: number; message?: string }) => {
      seen.push(progress);
      notified();
    };
    const reply = await client.callTool(tool, { onprogress });
    expect(reply.structuredContent).toEqual({ ok: true });
    expect(seen).toEqual([{ progress: expect.any(Number), message: 'the agent is still working' }]);
    expect(seen[0]!.progress).toBeGreaterThan(0);
    await client.close();
  });

  it('without a token no progress is sent before the answer, in both eras', async () => {
    // The progress of the other caller proves that the time for progress has come.
    const token = (progressToken: string) => ({ progressToken });
    const modern = modernRequest('tools/call', tool, 'm');
    let notified: () => void = () => undefined;
    answerOn(new Promise<void>((resolve) => (notified = resolve)));
    const post = (body: unknown, headers: Record<string, string> = streams) =>
      openEvents(`${one.url}/mcp`, { method: 'POST', token: one.token, headers, body });
    const quiet = Promise.all([
      one.call('POST', '/mcp', callOf(1), one.token, streams),
      one.call('POST', '/mcp', modern.body, one.token, modern.headers),
      one.call('POST', '/mcp', callOf(2, { progressToken: { no: 'token' } }), one.token, streams),
      one.call('POST', '/mcp', callOf(3, token('json only')), one.token, { accept: 'application/json' }),
    ]);
    await agent.waitForRequests(4);
    const loud = await post(callOf(4, token('t4')));
    expect(await loud.next()).toMatchObject({ method: 'notifications/progress', params: { progressToken: 't4' } });
    notified();
    expect(await loud.rest()).toMatchObject([{ id: 4, result: { structuredContent: { ok: true } } }]);
    for (const { headers, body } of await quiet) {
      expect(headers.get('content-type')).toContain('application/json');
      expect(body.result.structuredContent).toEqual({ ok: true });
    }
  });

  it('abuse 25 notifications/cancelled ends the call at its agent; it is no failure of the agent', async () => {
    agent.set(data({ ok: true }));
    await one.rpc('tools/call', tool);
    const before = await outcomes();
    agent.set(hang);
    const session = await initialize();
    for (const [id, via] of [
      [7, one],
      ['seven', two],
      [2n ** 53n + 1n, two],
    ] as const) {
      agent.requests.length = 0;
      const reply = one.call('POST', '/mcp', callOf(id), one.token, session);
      await agent.waitForRequests(1);
      // The next smaller integer, which a double cannot tell from the last id.
      await via.call('POST', '/mcp', cancel(2 ** 53), one.token, session);
      const accepted = await via.call('POST', '/mcp', cancel(id), one.token, session);
      expect(accepted.status).toBe(202);
      expect((await agent.closed(1))[0]!.aborted).toBe(true);
      const { body } = await reply;
      expect([body.id, body.error.data.code]).toEqual([typeof id === 'bigint' ? Number(id) : id, 'canceled']);
    }
    expect(await outcomes()).toEqual(before);
    const rows = await one.sql("select status, error_code from a2a_task_instances where error_code = 'canceled'");
    expect(rows).toEqual(Array(3).fill({ status: 'failed', error_code: 'canceled' }));
  });

  it('abuse 40 only its own session can cancel a call', async () => {
    let finish: () => void = () => undefined;
    answerOn(new Promise<void>((resolve) => (finish = resolve)));
    const [mine, other] = [await initialize(), await initialize()];
    const reply = one.call('POST', '/mcp', callOf(1), one.token, mine);
    await agent.waitForRequests(1);
    for (const headers of [other, {}]) await one.call('POST', '/mcp', cancel(1), one.token, headers);
    for (const id of ['1', 2, null, { a: 1 }, undefined]) await one.call('POST', '/mcp', cancel(id), one.token, mine);
    finish();
    expect((await reply).body.result.structuredContent).toEqual({ ok: true });
  });

  it.each(['sdk v1', 'legacy', 'auto', 'pinned'] as const)(
    'an aborted call of %s cancels the remote task',
    async (kind) => {
      agent.set(never);
      const client =
        kind === 'sdk v1'
          ? await connectLegacySdk(`${one.url}/mcp`, one.token)
          : await connectSdk(`${one.url}/mcp`, one.token, kind);
      const leave = new AbortController();
      const reply = client.callTool(tool, { signal: leave.signal }).catch((error: unknown) => error);
      await agent.until(() => agent.requests.some(({ operation }) => operation === 'get'), 'a poll of the task');
      leave.abort();
      expect(await reply).toBeInstanceOf(Error);
      const [canceled] = await agent.waitForCancels();
      expect(agent.tasks.get(canceled!)?.state).toBe('canceled');
      await client.close();
    },
  );

  it('a modern client that disconnects ends the call at its agent', async () => {
    agent.set(hang);
    const { headers, body } = modernRequest('tools/call', tool, 'leaving');
    const leave = new AbortController();
    const gone = fetch(`${one.url}/mcp`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', authorization: `Bearer ${one.token}` },
      body: JSON.stringify(body),
      signal: leave.signal,
    }).catch((error: unknown) => error);
    await agent.waitForRequests(1);
    leave.abort();
    await gone;
    await agent.closed(1);
  });

  it('a legacy client that disconnects has not canceled: its call continues', async () => {
    let finish: () => void = () => undefined;
    answerOn(new Promise<void>((resolve) => (finish = resolve)));
    const before = await outcomes();
    const leave = new AbortController();
    const gone = fetch(`${one.url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${one.token}` },
      body: JSON.stringify(callOf(1)),
      signal: leave.signal,
    }).catch((error: unknown) => error);
    await agent.waitForRequests(1);
    leave.abort();
    await gone;
    await one.rpc('ping');
    finish();
    await agent.idle();
    for (let now = await outcomes(); now.successes === before.successes; now = await outcomes());
    expect(agent.requests[0]!.aborted).toBe(false);
  });
});
