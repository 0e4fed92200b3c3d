import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { closeRemotes, quick, startRemote, type Remote } from '../../support/clients/remote-work.js';
import { asyncTask, blocking, data, never, text } from '../../support/stubs/stub-behaviours.js';
import type { StubAgentOptions } from '../../support/stubs/stub-agent.js';
import { startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';

describe('a step that outlives its call is reported to a webhook', () => {
  let gateway: TestGateway;
  let sink: WebhookSink;
  beforeAll(async () => {
    gateway = await startTestGateway(quick);
    sink = await startWebhookSink();
  });
  afterAll(async () => {
    await gateway.close();
    await Promise.all([closeRemotes(), sink.close()]);
  });
  beforeEach(() => void (sink.received.length = 0));

  const post = (path: string, body: object, token?: string) => gateway.call('POST', `/api/a2a/${path}`, body, token);
  const invocation = ({ slug }: Remote, more: object = {}) => ({ agentCardId: slug, skillId: 'work', ...more });
  const outcomes = ({ slug }: Remote) =>
    gateway.sql(
      'select o.successes, o.failures from agent_outcomes o join agent_cards a on a.id = o.agent_id where a.slug = $1',
      [slug],
    );

  it.each(['invoke', 'dispatch'] as const)('RI-40 the end of a step of %s, in the format of runs', async (step) => {
    const remote = await startRemote(gateway, asyncTask(30, text(`by ${step}`)), {
      skills: [{ id: 'work', tags: [step] }],
    });
    const url = `${sink.url}/${step}?run={{run}}`;
    const wanted = step === 'invoke' ? invocation(remote) : { workType: 'told', requiredSkills: [step] };
    const { body } = await post(step, { ...wanted, webhook_url: url, context: { run: 7 } });
    expect(body.output).toMatchObject({ state: 'working' });
    const [delivery] = await eventually(
      () => Promise.resolve(sink.received),
      ({ length }) => length === 1,
    );
    expect(delivery).toMatchObject({
      path: `/${step}?run=7`,
      body: { run_id: body.taskId, status: 'completed', agent_name: remote.slug, result: `by ${step}` },
    });
    const { body: log } = await eventually(
      () => gateway.call('GET', `/api/webhooks/deliveries?taskId=${body.taskId}`),
      ({ body: { items } }) => items.every(({ state }: any) => ['delivered', 'skipped'].includes(state)),
    );
    expect(log.items.map(({ configId, state }: any) => [configId, state])).toContainEqual(['webhook_url', 'delivered']);
    expect(sink.received).toHaveLength(1);
  });

  it.each<[string, StubAgentOptions, 'webhook_url' | 'thread']>([
    ['1.0, a webhook', { card: 'v1' }, 'webhook_url'],
    ['0.3, a webhook', { card: 'v03' }, 'webhook_url'],
    ['REST alone, a webhook', { card: 'v1', speaks: ['v1-rest'] }, 'webhook_url'],
    ['1.0, a thread', { card: 'v1' }, 'thread'],
  ])(
    'by an agent that blocks longer than the call unless the request is non-blocking: %s',
    async (_name, options, channel) => {
      const remote = await startRemote(gateway, blocking(60_000, text('dug')), options);
      const url = `${sink.url}/dug`;
      const { body } = await post(
        'invoke',
        invocation(remote, { [channel]: channel === 'thread' ? { url, id: 't' } : url }),
      );
      expect(body.output).toMatchObject({ state: 'working' });
      await eventually(
        () => sink.received.map((one) => one.body.result ?? one.body.text),
        (words) => words.includes('dug'),
      );
    },
  );

  it('RE-72 a call that continues as a task is listed with it while it runs', async () => {
    const remote = await startRemote(gateway, never);
    const { body } = await post('invoke', invocation(remote));
    const { items } = await eventually(
      async () => (await gateway.call('GET', `/api/a2a/dispatches?agentId=${remote.slug}`)).body,
      (list) => list.items[0].taskId === body.taskId,
    );
    expect(items).toMatchObject([{ status: 'running', taskId: body.taskId }]);
  });

  it('an agent that answers at once has no task, and no webhook is posted', async () => {
    const remote = await startRemote(gateway, data({ at: 'once' }));
    const { body } = await post('invoke', invocation(remote, { webhook_url: sink.url }));
    expect(body.output).toEqual({ at: 'once' });
    expect(await gateway.sql('select from push_configs where url = $1', [sink.url])).toEqual([]);
  });

  it.each([
    ['invoke', 'http://169.254.169.254/hook', 422, 'url_not_allowed'],
    ['dispatch', 'http://10.0.0.1/hook', 422, 'url_not_allowed'],
    ['invoke', 'file:///etc/passwd', 422, 'url_not_allowed'],
    ['dispatch', '', 400, 'invalid_params'],
    ['invoke', `http://x/${'y'.repeat(2_100)}`, 400, 'invalid_params'],
  ])('abuse 22: %s refuses such a URL (%#), and calls no agent', async (step, url, status, code) => {
    const remote = await startRemote(gateway, never, { skills: [{ id: 'work', tags: ['refused'] }] });
    const wanted = step === 'invoke' ? invocation(remote) : { workType: 'x', requiredSkills: ['refused'] };
    const answer = await post(step, { ...wanted, webhook_url: url });
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect(remote.agent.requests).toEqual([]);
    expect(await outcomes(remote)).toEqual([]);
  });

  it('a caller that may not use webhooks is refused, and the agent is not blamed', async () => {
    const remote = await startRemote(gateway, never, { skills: [{ id: 'work', tags: ['forbidden'] }] });
    const text = `forbid(principal == User::"mute", action == Action::"push_configure", resource);`;
    expect((await gateway.call('POST', '/api/policies', { name: 'mute', text })).status).toBe(201);
    const mute = await gateway.tokenOf('default', 'mute');
    for (const [step, wanted] of [
      ['invoke', invocation(remote)],
      ['dispatch', { workType: 'x', requiredSkills: ['forbidden'] }],
    ] as const) {
      const answer = await post(step, { ...wanted, webhook_url: sink.url }, mute);
      expect([answer.status, answer.body.code]).toEqual([403, 'denied']);
    }
    const log = (await gateway.call('GET', '/api/audit/decisions?decision=deny')).body.items;
    const denials = log.filter(({ action }: any) => action === 'push_configure');
    expect(denials.map(({ policyIds, outcome }: any) => [policyIds, outcome])).toEqual(
      Array(2).fill([['mute'], 'denied']),
    );
    expect(remote.agent.requests).toEqual([]);
    expect(await outcomes(remote)).toEqual([]);
    const calls = await gateway.sql('select status from a2a_task_instances where agent_name = $1', [remote.slug]);
    expect(calls.map(({ status }) => status)).toEqual(['failed', 'failed']); // neither is counted as running
  });
});
