import { publish, rpc, rpcStream } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { ModelServer } from '../../support/stubs/model-server.js';
import { TestUpstream } from '../../support/stubs/upstream.js';
import { startWebhookSink } from '../../support/stubs/webhook-sink.js';

const call = (name: string, args: unknown = {}) => ({ calls: [{ name, args }] });
const older = (words: string) => ({
  message: { kind: 'message', messageId: `m-${Math.random()}`, role: 'user', parts: [{ kind: 'text', text: words }] },
});

describe('an agent with a model', () => {
  let gateway: TestGateway;
  let model: ModelServer;
  let upstream: TestUpstream;
  beforeAll(async () => {
    gateway = await startTestGateway();
    model = await ModelServer.start();
    upstream = await TestUpstream.start();
    upstream.add('weather', ({ city }) => ({ content: [{ type: 'text', text: `${String(city)}: rain` }] }));
    await gateway.call('POST', '/api/mcp/servers', { id: 'town', url: upstream.url });
    const executor = { kind: 'llm', url: model.url, model: 'm', tools: ['town__*'] };
    await publish(gateway, { name: 'tooled', executor });
  });
  afterAll(async () => {
    await model.close();
    await upstream.close();
    await gateway.close();
  });

  it('RY-09 no answer, stream, read, event, webhook or card names a tool, its arguments or its result', async () => {
    const hook = await startWebhookSink();
    const script = [call('town__weather', { city: 'Oslo' }), call('town__weather', 'no JSON'), { text: ['It snows.'] }];
    model.script(...script);
    const frames = await (await rpcStream(gateway, 'message/stream', older('weather?'), { agent: 'tooled' })).rest();
    model.script(...script);
    const pushNotificationConfig = { url: `${hook.url}/hook` };
    const sent = { ...older('weather?'), configuration: { pushNotificationConfig } };
    const task = await rpc(gateway, 'message/send', sent, { agent: 'tooled' });
    await eventually(
      () => Promise.resolve(hook.received.map(({ text: body }) => body).join()),
      (bodies) => bodies.includes('It snows.'),
    );
    const read = (path: string) => gateway.call('GET', path).then(({ body }) => body as unknown);
    const seen = {
      frames,
      task,
      webhooks: hook.received.map(({ text: body }) => body),
      again: await rpc(gateway, 'GetTask', { id: task.id }, { agent: 'tooled', headers: { 'a2a-version': '1.0' } }),
      events: await read(`/a2a/tasks/${task.id}/events`),
      run: await read(`/a2a/tasks/${task.id}`),
      card: await read('/a2a/agents/tooled/.well-known/agent-card.json'),
    };
    await hook.close();
    for (const [name, value] of Object.entries(seen)) {
      expect([name, JSON.stringify(value)]).toEqual([name, expect.not.stringMatching(/town|Oslo|: rain|no JSON/)]);
      if (name !== 'card') expect(JSON.stringify(value)).toContain('It snows.');
    }
  });
});
