import { Metrics } from '../../../src/platform/telemetry/metrics.js';
import { encrypt, generateKeys, publicKeys, type Envelope } from '../../../src/protocol/e2ee/e2ee.js';
import { openStream, publish, rpc, rpcCall, userMessage } from '../../support/clients/a2a.js';
import { GrpcCaller } from '../../support/clients/grpc-client.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { HttpService } from '../../support/stubs/http-service.js';
import { TestUpstream } from '../../support/stubs/upstream.js';
import { startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';

const marker = 'the-merger-closes-on-friday';

describe('end-to-end encrypted messages', () => {
  let gateway: TestGateway;
  let grpc: GrpcCaller;
  let sink: WebhookSink;
  let service: HttpService;
  let sealed: Envelope;

  beforeAll(async () => {
    gateway = await startTestGateway({ GRPC_PORT: '0' });
    [grpc, sink, service] = [new GrpcCaller(gateway), await startWebhookSink(), await HttpService.start()];
    await publish(gateway);
    await publish(gateway, { name: 'asks', executor: { kind: 'echo', ask: 'Which colour?' } });
    await publish(gateway, { name: 'served', executor: { kind: 'http', url: service.url } });
    await publish(gateway, { name: 'model', executor: { kind: 'llm', url: service.url, model: 'm' } });
    sealed = await encrypt(marker, {
      keys: generateKeys(),
      sender: 'alice',
      recipient: 'bob',
      recipientKeys: publicKeys(generateKeys()),
      messageId: 'm-1',
      contextId: 'c-1',
    });
  });
  afterAll(async () => {
    grpc.close();
    await Promise.all([sink.close(), service.close()]);
    await gateway.close();
  });

  const message = (more: object = {}) => userMessage('', { parts: [{ data: sealed }], ...more });
  const dataIn = (parts: any[]) => JSON.stringify(parts[0].data);
  const sent = async (agent = 'echo', more: object = {}) =>
    (await rpc(gateway, 'SendMessage', { message: message(), ...more }, { agent })).task;

  it('RI-05: are relayed byte for byte in every dialect, from each one to each other one', async () => {
    const bytes = JSON.stringify(sealed);
    const viaRest = await gateway.call('POST', '/a2a/agents/echo/message:send', { message: message() });
    const older = await rpc(gateway, 'message/send', {
      message: { kind: 'message', messageId: 'older', role: 'user', parts: [{ kind: 'data', data: sealed }] },
    });
    const viaGrpc: any = (await grpc.call('sendMessage', { tenant: 'echo', message: message() })).answer;
    const ids = [(await sent()).id, viaRest.body.task.id, older.id, viaGrpc.payload.value.id];
    for (const id of ids) {
      const newer = await rpc(gateway, 'GetTask', { id });
      const rest = (await gateway.call('GET', `/a2a/agents/echo/tasks/${id}`)).body;
      const old = await rpc(gateway, 'tasks/get', { id });
      const remote: any = (await grpc.call('getTask', { tenant: 'echo', id })).answer;
      for (const { history, artifacts } of [newer, rest, old]) {
        expect(dataIn(history[0].parts)).toBe(bytes);
        expect(dataIn(artifacts[0].parts)).toBe(bytes);
      }
      expect(remote.history[0].parts[0].content.value).toEqual(sealed);
    }
  });

  it('RI-05: are relayed byte for byte in streams, webhooks, work orders and after a restart', async () => {
    const stream = await openStream(`${gateway.url}/a2a/agents/echo/message:stream`, {
      token: gateway.token,
      body: { message: message() },
    });
    const artifacts = (await stream.rest()).flatMap(({ data }) => data.artifactUpdate?.artifact.parts ?? []);
    expect(artifacts).toEqual([{ data: sealed }]);

    const { id } = await sent('echo', { configuration: { taskPushNotificationConfig: { url: `${sink.url}/hook` } } });
    const posts = await eventually(
      () => sink.received,
      (all) => all.some(({ body }) => body.artifactUpdate),
    );
    const posted = posts.find(({ body }) => body.artifactUpdate)!;
    expect(dataIn(posted.body.artifactUpdate.artifact.parts)).toBe(JSON.stringify(sealed));

    await sent('served', { configuration: { returnImmediately: true } });
    const [order] = await eventually(
      () => service.calls,
      (calls) => calls.length > 0,
    );
    expect(dataIn(order!.body.message.parts)).toBe(JSON.stringify(sealed));
    expect(order!.body.caller).toMatchObject({ trustTier: 3 });

    const second = await startTestGateway({}, gateway);
    const task = await rpc(second, 'GetTask', { id }, { token: gateway.token });
    await second.close();
    expect([task.history[0].parts, task.artifacts[0].parts]).toEqual([[{ data: sealed }], [{ data: sealed }]]);
  });

  it('RI-05: are in no log, metric, audit row or policy input', async () => {
    await gateway.call('POST', '/api/policies', {
      name: 'no-ciphertext',
      text: 'forbid(principal, action, resource) when { context.input.hasTag("encrypted_payload") };',
    });
    await sent();
    await gateway.call('DELETE', '/api/policies/no-ciphertext');
    const rows = await gateway.sql<{ text: string }>(
      `select t::text as text from audit_events t
       union all
       select t::text from a2a_task_instances t`,
    );
    const seen = [...gateway.log, await gateway.gateway.get(Metrics).registry.metrics(), JSON.stringify(rows)].join(
      '\n',
    );
    expect(rows.length).toBeGreaterThan(0);
    for (const secret of [marker, sealed.encrypted_payload, sealed.encrypted_payload.slice(0, 60)])
      expect(seen).not.toContain(secret);
  });

  it('RI-05: show policies that they are encrypted, their size and their tier', async () => {
    const bytes = Buffer.byteLength(sealed.encrypted_payload, 'base64url');
    const text = `forbid(principal, action == Action::"task_submit", resource)
      unless { context.encrypted && context.encryptedBytes == ${bytes} && context.trustTier >= 1 };`;
    const { body: policy } = await gateway.call('POST', '/api/policies', { name: 'sealed-only', text });
    const question = { principal: 'User::"bob"', action: 'task_submit', resource: 'PublishedAgent::"echo"' };
    const asked = async (more: object) =>
      (await gateway.call('POST', '/api/policies/test', { ...question, ...more })).body.decision;
    await expect(sent()).resolves.toMatchObject({ status: { state: 'TASK_STATE_COMPLETED' } });
    const { body } = await rpcCall(gateway, 'SendMessage', { message: userMessage('plain') });
    const decisions = [
      await asked({}),
      await asked({ encrypted: { bytes } }),
      await asked({ encrypted: { bytes: 9 } }),
    ];
    await gateway.call('DELETE', `/api/policies/${policy.id}`);
    expect(body.error).toMatchObject({ message: expect.stringContaining('sealed-only') });
    expect(decisions).toEqual(['deny', 'allow', 'deny']);
  });

  it('RI-05: are refused by agents that the gateway runs itself, because it has no key', async () => {
    const { body } = await rpcCall(gateway, 'SendMessage', { message: message() }, { agent: 'model' });
    expect(body.error).toMatchObject({ code: -32005, message: expect.stringMatching('take encrypted messages') });
  });

  it('RI-05: are refused by routes to such an executor, before anything is stored', async () => {
    const upstream = await TestUpstream.start();
    upstream.add('count', () => ({ content: [] }));
    await gateway.call('POST', '/api/mcp/servers', { id: 'notes', url: upstream.url });
    const tool = { kind: 'mcp-tool', serverId: 'notes', tool: 'count' };
    const asking = { kind: 'echo', ask: 'Which one?' };
    const routes = (executor: object, otherwise: object) => ({
      kind: 'routes',
      routes: [{ when: ['question'], executor }],
      otherwise,
    });
    await publish(gateway, { name: 'reads', executor: routes(asking, tool) });
    await publish(gateway, { name: 'relays', executor: routes(tool, { kind: 'echo' }) });
    const question = (await rpc(gateway, 'SendMessage', { message: userMessage('question') }, { agent: 'reads' })).task;
    const tasks = () => gateway.sql(`select id from a2a_tasks where agent_name = 'reads'`);
    const { error } = (await rpcCall(gateway, 'SendMessage', { message: message() }, { agent: 'reads' })).body;
    expect(error).toMatchObject({ code: -32005, message: expect.stringMatching('take encrypted messages') });
    expect([await tasks(), upstream.calls]).toEqual([[{ id: question.id }], []]);
    const answer = { message: message({ taskId: question.id }) };
    const answered = (await rpc(gateway, 'SendMessage', answer, { agent: 'reads' })).task;
    expect(answered.status.state).toBe('TASK_STATE_COMPLETED');
    expect((await sent('relays')).status.state).toBe('TASK_STATE_COMPLETED');

    const open = (await rpc(gateway, 'SendMessage', { message: userMessage('question') }, { agent: 'reads' })).task;
    await gateway.call('PATCH', '/api/a2a/published/reads', { executor: routes(tool, { kind: 'echo' }) });
    const late = await rpcCall(gateway, 'SendMessage', { message: message({ taskId: open.id }) }, { agent: 'reads' });
    expect(late.body.error).toMatchObject({ code: -32005 });
    expect(upstream.calls).toEqual([]);
    await upstream.close();
  });

  it('RI-07: have the tier of the org, and cleartext has tier 0 for the same sender', async () => {
    const forged = { 'rialto/trustTier': 3, own: 1 };
    const cleartext = { message: userMessage('plain', { metadata: forged }), metadata: forged };
    const plain = (await rpc(gateway, 'SendMessage', cleartext)).task;
    const secret = await sent();
    const stored = async (id: string) => (await gateway.call('GET', `/api/a2a/tasks/${id}`)).body.trustTier;
    expect(plain.history[0].metadata).toEqual({ own: 1 });
    expect([plain.metadata, secret.metadata]).toEqual([{ own: 1 }, { 'rialto/trustTier': 3 }]);
    expect([await stored(plain.id), await stored(secret.id)]).toEqual([0, 3]);
  });

  it('RI-07: fall to tier 0 with the first cleartext message of their task', async () => {
    const { id } = await sent('asks');
    const tier = async () =>
      (await gateway.sql('select trust_tier as tier from a2a_tasks where id = $1', [id]))[0].tier;
    expect(await tier()).toBe(3);
    await rpc(gateway, 'SendMessage', { message: userMessage('red', { taskId: id }) }, { agent: 'asks' });
    expect(await tier()).toBe(0);
  });
});
