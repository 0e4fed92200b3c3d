import { createSecretKey } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { depthHeader } from '../../../src/policy/context.service.js';
import { LineageSeal, lineageHeader, type SealedLineage } from '../../../src/platform/secrets/lineage.js';
import { publish, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { HttpService } from '../../support/stubs/http-service.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { data } from '../../support/stubs/stub-behaviours.js';

describe('AN-61 the lineage of delegated calls', () => {
  let gateway: TestGateway;
  let seal: LineageSeal;
  const foreignSeal = new LineageSeal(createSecretKey(Buffer.alloc(32, 7)));
  const agents = {} as Record<'a' | 'b' | 'c' | 'd', StubAgent>;

  beforeAll(async () => {
    gateway = await startTestGateway();
    seal = gateway.gateway.get(LineageSeal);
    for (const name of ['a', 'b', 'c', 'd'] as const) {
      agents[name] = await startStubAgent({ card: 'v03', name: `Agent ${name}`, behaviour: data({ ok: true }) });
      await gateway.call('POST', '/api/a2a/agents', { url: agents[name].url, slug: `agent_${name}` });
    }
    await publish(gateway, { name: 'front', executor: { kind: 'remote', agentId: 'agent_a' } });
  });
  afterAll(async () => {
    await gateway.close();
    await Promise.all(Object.values(agents).map((agent) => agent.close()));
  });
  beforeEach(() => {
    for (const agent of Object.values(agents)) agent.requests.length = 0;
  });

  const opened = (header: string): SealedLineage => seal.openLineage(header) as SealedLineage;
  const tool = (slug: string, lineage?: string, more: Record<string, string> = {}) =>
    gateway.call(
      'POST',
      '/mcp',
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: `${slug}.work`, arguments: {} } },
      gateway.token,
      lineage === undefined ? more : { [lineageHeader]: lineage, ...more },
    );
  const send = (lineage: string | undefined, configuration = {}) =>
    gateway.call(
      'POST',
      '/a2a/agents/front',
      { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: userMessage('x'), configuration } },
      gateway.token,
      lineage === undefined ? {} : { [lineageHeader]: lineage },
    );
  /** Returns the lineage header of the newest request of an agent, as the agent would forward it. */
  const given = (agent: StubAgent): string => agent.requests.at(-1)!.headers[lineageHeader] as string;

  it('lists the agents of a call, and a circle is refused before a request is sent', async () => {
    await tool('agent_a');
    const fromA = given(agents.a);
    expect(seal.openLineage(fromA)).toEqual({ depth: 1, path: [agents.a.url], deadlineAt: expect.any(Number) });
    expect((await tool('agent_b', fromA)).body.result.structuredContent).toEqual({ ok: true });
    const fromB = given(agents.b);
    expect(seal.openLineage(fromB)).toMatchObject({ depth: 2, path: [agents.a.url, agents.b.url] });
    expect(opened(fromB).deadlineAt).toBe(opened(fromA).deadlineAt);
    const circle = await tool('agent_a', fromB);
    expect(circle.body.error.data.code).toBe('loop_detected');
    expect(agents.a.requests).toHaveLength(1);
    const [row] = await gateway.sql(
      `select event->>'outcome' as outcome, event->'error'->>'code' as code
       from audit_events
       where event->>'verb' = 'agent_a.work'
       order by at desc
       limit 1`,
    );
    expect(row).toEqual({ outcome: 'failed', code: 'loop_detected' });
  });

  it('refuses the fourth hop', async () => {
    let lineage: string | undefined;
    for (const name of ['a', 'b', 'c'] as const) {
      expect((await tool(`agent_${name}`, lineage)).body.result.structuredContent).toEqual({ ok: true });
      lineage = given(agents[name]);
    }
    const { body } = await tool('agent_d', lineage);
    expect(JSON.stringify(body)).toContain('loop_detected');
    expect(agents.d.requests).toHaveLength(0);
  });

  it.each<[string, (header: string) => string]>([
    ['changed', (header) => header.slice(0, -1) + (header.endsWith('A') ? 'B' : 'A')],
    [
      'of a lower depth',
      (header) => header.replace(/\.[^.]*\./, `.${Buffer.from('{"depth":0,"path":[]}').toString('base64url')}.`),
    ],
    ['of another deployment, and changed', () => foreignSeal.sealLineage({ depth: 1, path: [] }).slice(0, -1) + '='],
    ['empty', () => ''],
    ['not a lineage', () => 'none'],
  ])('fails closed at every door when it is %s', async (_, spoil) => {
    await tool('agent_a');
    const damaged = spoil(given(agents.a));
    agents.a.requests.length = 0;
    const answers = [
      await tool('agent_a', damaged),
      await send(damaged),
      await gateway.call('GET', '/api/a2a/agents', undefined, gateway.token, { [lineageHeader]: damaged }),
    ];
    for (const { status, body } of answers) {
      expect(JSON.stringify(body)).toMatch(/loop_detected|LOOP_DETECTED|lineage of this call is damaged/);
      expect(status === 200 && body.error === undefined).toBe(false);
    }
    expect(agents.a.requests).toHaveLength(0);
  });

  it('of another deployment is ignored: the call begins a new lineage with the depth of its plain header', async () => {
    const theirs = foreignSeal.sealLineage({ depth: 1, path: [agents.a.url] });
    expect((await tool('agent_a', theirs)).body.result.structuredContent).toEqual({ ok: true });
    expect(seal.openLineage(given(agents.a))).toMatchObject({ depth: 1, path: [agents.a.url] });
    expect((await send(theirs)).body.result.task.id).toEqual(expect.any(String));
    const deep = await tool('agent_b', theirs, { [depthHeader]: '3' });
    expect(JSON.stringify(deep.body)).toContain('loop_detected');
    expect(agents.b.requests).toHaveLength(0);
  });

  it('a call without a waiting caller is not begun', async () => {
    const late = seal.sealLineage({ depth: 1, path: ['x'], deadlineAt: Date.now() - 1 });
    expect(JSON.stringify((await tool('agent_a', late)).body)).toContain('no time left');
    expect(agents.a.requests).toHaveLength(0);
  });

  describe('(P1) of published agents with external workers', () => {
    const sendTo = (agent: string, headers: Record<string, string> = {}) => {
      const params = { message: userMessage('x'), configuration: { returnImmediately: true } };
      const call = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params };
      return gateway.call('POST', `/a2a/agents/${agent}`, call, gateway.token, headers);
    };
    const passedOn = ({ headers }: { headers: IncomingHttpHeaders }): Record<string, string> => {
      const names = ['traceparent', depthHeader, lineageHeader];
      return Object.fromEntries(names.map((name) => [name, headers[name] as string]));
    };

    it('reaches a service, which cannot call itself in circles, up to the third hop', async () => {
      const trace = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` };
      const service = await HttpService.start();
      try {
        for (const name of ['loop-1', 'loop-2', 'loop-3', 'loop-4'])
          await publish(gateway, { name, executor: { kind: 'http', url: service.url } });
        let headers: Record<string, string> = trace;
        for (const [index, name] of ['loop-1', 'loop-2', 'loop-3'].entries()) {
          await sendTo(name, headers);
          const call = await eventually(
            () => service.calls[index],
            (given) => given !== undefined,
          );
          headers = passedOn(call!);
          expect(call!.body.headers).toEqual(headers);
          expect(headers.traceparent).toContain('a'.repeat(32));
          expect(opened(headers[lineageHeader]!)).toMatchObject({ depth: index + 1 });
          expect(JSON.stringify((await sendTo(name, headers)).body)).toMatch(/already at work behind|3 hops deep/);
        }
        expect(JSON.stringify((await sendTo('loop-4', headers)).body)).toContain('3 hops deep');
        const depthOnly = { [depthHeader]: headers[depthHeader]! };
        expect(JSON.stringify((await sendTo('loop-4', depthOnly)).body)).toContain('3 hops deep');
        expect(service.calls).toHaveLength(3);
      } finally {
        await service.close();
      }
    });

    it('reaches the worker of a mailbox, with the trace of the sender', async () => {
      await publish(gateway, { name: 'boxed', executor: { kind: 'mailbox' } });
      await sendTo('boxed', { traceparent: `00-${'c'.repeat(32)}-${'d'.repeat(16)}-01` });
      const { body } = await gateway.call('POST', '/api/mailbox/boxed/lease?waitMs=30000');
      expect(opened(body.headers[lineageHeader])).toMatchObject({
        depth: 1,
        path: [expect.stringMatching(/^published:/)],
      });
      expect(body.headers.traceparent).toBe(`00-${'c'.repeat(32)}-${'d'.repeat(16)}-01`);
      expect(JSON.stringify((await sendTo('boxed', body.headers)).body)).toContain('already at work behind');
    });
  });

  it.each([
    ['waits', {}],
    ['does not wait', { returnImmediately: true }],
  ])(
    'a published agent with a caller that %s is part of it, and is not called on the way to its answer',
    async (_, configuration) => {
      const before = seal.sealLineage({ depth: 1, path: ['https://far.example'] });
      const { body } = await send(before, configuration);
      const { id } = body.result.task;
      await eventually(
        () => gateway.sql('select status_state from a2a_tasks where id = $1', [id]),
        ([task]) => task!.status_state === 'completed',
      );
      const lineage = given(agents.a);
      const { path, depth } = opened(lineage);
      expect([depth, path]).toEqual([2, ['https://far.example', expect.stringMatching(/^published:/), agents.a.url]]);
      const circle = await send(lineage);
      expect(JSON.stringify(circle.body)).toContain('already at work behind this call');
      expect(agents.a.requests).toHaveLength(1);
    },
  );
});
