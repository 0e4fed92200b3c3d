import { publish } from '../../support/clients/a2a.js';
import { startExampleWorld, type ExampleWorld } from '../../support/documents/example-world.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';

/* Runs the examples of rine's A2A page, with the names of its methods. */
describe('the examples of rine', () => {
  let world: ExampleWorld;
  let sink: WebhookSink;

  beforeAll(async () => {
    world = await startExampleWorld('core.example.com');
    sink = await startWebhookSink();
    const kofi = { name: 'kofi', handle: 'kofi@core.example.com', a2a_enabled: false, extendedCard: true };
    await publish(world.gateway, { ...kofi, executor: { kind: 'echo', chunks: 2 } });
    await publish(world.gateway, { name: 'asleep', executor: { kind: 'echo', delayMs: 600_000 } });
    await publish(world.gateway, { name: 'asks', executor: { kind: 'echo', ask: 'Which one?' } });
  });
  afterAll(async () => {
    await world.close();
    await sink.close();
  });

  const curl = (handle: string, method: string, params: object, more = '') =>
    `curl -X POST https://core.example.com/a2a/${handle} ${more} \\
      -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
      -d '${JSON.stringify({ jsonrpc: '2.0', id: '1', method, params })}'`;
  const rpc = async (handle: string, method: string, params: object, more?: string) =>
    world.json(curl(handle, method, params, more));
  const message = (text: string, more: object = {}) => ({
    message: { role: 'user', parts: [{ type: 'text', text }], ...more },
  });
  const soon = { configuration: { returnImmediately: true } };

  it('RI-03 RI-04 RI-08 RI-09 RI-11 an agent is reachable after it is enabled', async () => {
    const status = `curl -o answer -w '%{http_code}' https://core.example.com/a2a/kofi@core.example.com/agent.json`;
    expect(await world.sh(status)).toBe('404');
    await world.sh(
      `curl -X PATCH https://core.example.com/api/a2a/published/kofi -H "Authorization: Bearer $TOKEN" \\
        -H 'Content-Type: application/json' -d '{"a2a_enabled": true, "a2a_accept_cleartext": true}'`,
    );
    const card = await world.json('curl https://core.example.com/a2a/kofi%40core.example.com/agent.json');
    expect(card.name).toBe('kofi');
    expect(card.capabilities).toMatchObject({ streaming: true, pushNotifications: true, extendedAgentCard: true });
    const bindings = card.supportedInterfaces.map((one: { protocolBinding: string }) => one.protocolBinding);
    expect(bindings).toEqual(expect.arrayContaining(['JSONRPC', 'HTTP+JSON']));
    expect(await world.sh(status)).toBe('200');
  });

  it('RI-15 RI-16 RI-19 tasks/send waits for the reply, tasks/get reads it', async () => {
    const { result } = await rpc('kofi@core.example.com', 'tasks/send', message('Hello from A2A'));
    expect(result).toMatchObject({ status: { state: 'completed' }, history: [{ role: 'user' }] });
    const read = await rpc('kofi', 'tasks/get', { id: result.id });
    expect(read.result).toMatchObject({ id: result.id, status: { state: 'completed' } });
    const closed = `curl -o answer -w '%{http_code}' -X POST https://core.example.com/a2a/kofi -d '{}'`;
    expect(await world.sh(`${closed} -H 'Content-Type: application/json'`)).toBe('401');
  });

  it('RI-17 RI-20 returnImmediately answers at once, tasks/cancel ends the task', async () => {
    const { result } = await rpc('asleep', 'tasks/send', { ...message('later'), ...soon });
    expect(['submitted', 'working']).toContain(result.status.state);
    expect((await rpc('asleep', 'tasks/cancel', { id: result.id })).result.status.state).toBe('canceled');
  });

  it('RI-18 RI-21 RI-38 RI-39 tasks/sendSubscribe and tasks/subscribe stream to the end', async () => {
    const stream = await world.sh(curl('kofi', 'tasks/sendSubscribe', message('one two'), '-N'));
    const events = stream
      .split('\n')
      .filter((line) => line.startsWith('data: '))
      .map((line) => JSON.parse(line.slice(6)).result);
    expect(events.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['task', 'artifact-update', 'status-update']),
    );
    expect(events.at(-1)).toMatchObject({ final: true, status: { state: 'completed' } });
    const again = await world.sh(curl('kofi', 'tasks/subscribe', { id: events[0].id }, '-N'));
    expect(again).toContain('"state":"completed"');
  });

  it('RI-23 RI-24 RI-25 RI-40 RI-41 the push notifications of a task', async () => {
    const asked = (await rpc('asks', 'tasks/send', message('paint'))).result;
    const pushNotificationConfig = { url: `${sink.url}/hook`, token: 'verify-me' };
    const named = { taskId: asked.id };
    const set = await rpc('asks', 'tasks/pushNotification/set', { ...named, pushNotificationConfig });
    expect(set.result).toMatchObject({ taskId: asked.id, pushNotificationConfig: { url: `${sink.url}/hook` } });
    expect((await rpc('asks', 'tasks/pushNotification/get', named)).result).toMatchObject({ taskId: asked.id });
    await rpc('asks', 'tasks/send', message('red', { taskId: asked.id, contextId: asked.contextId }));
    const { headers, body } = await eventually(
      () => Promise.resolve(sink.received.at(-1)!),
      (post) => post?.body.status.state === 'completed',
    );
    expect(body).toMatchObject({ kind: 'task', id: asked.id });
    expect(headers['x-a2a-notification-token']).toBe('verify-me');
    expect((await rpc('asks', 'tasks/pushNotification/delete', named)).error).toBeUndefined();
    expect((await rpc('asks', 'tasks/pushNotification/get', named)).error.code).toBe(-32001);
  });

  it('RI-22 agent/authenticatedExtendedCard needs a credential', async () => {
    expect((await rpc('kofi', 'agent/authenticatedExtendedCard', {})).result.name).toBe('kofi');
  });

  it('RI-26 the names of 1.0 at the same address', async () => {
    const params = { message: { messageId: 'm-1', role: 'ROLE_USER', parts: [{ text: 'Hello' }] } };
    const { result } = await rpc('kofi', 'SendMessage', params, "-H 'A2A-Version: 1.0'");
    expect(result.task.status.state).toBe('TASK_STATE_COMPLETED');
  });

  it('RI-27 X-A2A-Timeout limits the wait', async () => {
    const { result } = await rpc('asleep', 'tasks/send', message('x'), "-H 'X-A2A-Timeout: 1'");
    expect(['submitted', 'working']).toContain(result.status.state);
    const refused = await rpc('asleep', 'tasks/send', message('x'), "-H 'X-A2A-Timeout: 301'");
    expect(refused.error.code).toBe(-32602);
  });
});
