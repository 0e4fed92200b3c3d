import type { Message, Task } from 'a2a-js-sdk-0.3';
import type { Client } from 'a2a-js-sdk-0.3/client';
import { publish } from '../../support/clients/a2a.js';
import { OlderSdkClients } from '../../support/clients/a2a-sdk-older.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startOlderSdkAgent, type OlderSdkAgent } from '../../support/stubs/sdk-agent-older.js';

// Data has no null here: over gRPC this SDK cannot write it, and reads it as 0.
const bindings = ['JSONRPC', 'HTTP+JSON', 'GRPC'] as const;
const textOf = ({ parts }: { parts: Message['parts'] }) => parts.map((part) => (part.kind === 'text' ? part.text : ''));
const message = (text: string, more: Partial<Message> = {}): Message => ({
  kind: 'message',
  messageId: `m-${Math.random()}`,
  role: 'user',
  parts: [{ kind: 'text', text }],
  ...more,
});

/* Tests the official JavaScript SDK of the line 0.3, unchanged, as a client and as an agent. */
describe('RI-01: the official SDK of the line 0.3', () => {
  let gateway: TestGateway;
  let clients: OlderSdkClients;

  beforeAll(async () => {
    gateway = await startTestGateway({ GRPC_PORT: '0' });
    clients = new OlderSdkClients(gateway);
    const executors = {
      echo: {},
      slow: { delayMs: 300, chunks: 3 },
      asleep: { delayMs: 600_000 },
      asks: { ask: 'Which?' },
    };
    for (const [name, more] of Object.entries(executors))
      await publish(gateway, {
        name,
        protocolVersions: ['0.3'],
        extendedCard: true,
        executor: { kind: 'echo', ...more },
      });
    await gateway.call('PATCH', '/api/orgs/default', { defaultAgent: 'echo' });
  });
  afterAll(async () => {
    clients.close();
    await gateway.close();
  });

  describe.each(bindings)('as a client over %s', (binding) => {
    const client = (agent: string): Promise<Client> =>
      // Only the card of the default agent lists gRPC, so callers of another agent name it in metadata.
      binding === 'GRPC'
        ? clients.open('/a2a/agents/echo/.well-known/agent-card.json', binding, { 'rialto-agent': agent })
        : clients.open(`/a2a/agents/${agent}/.well-known/agent-card.json`, binding);
    const begin = async (one: Client): Promise<Task> =>
      (await one.sendMessage({ message: message('work'), configuration: { blocking: false } })) as Task;

    it('sends, and reaches the agent of the card', async () => {
      const one = await client('echo');
      expect((await one.getAgentCard()).name).toBe('echo');
      const task = (await one.sendMessage({ message: message('hello') })) as Task;
      expect([task.kind, task.status.state, textOf(task.status.message!)]).toEqual(['task', 'completed', ['hello']]);
      expect(await one.getTask({ id: task.id })).toMatchObject({ id: task.id, status: { state: 'completed' } });
    });

    it('gets data and files back', async () => {
      const parts: Message['parts'] = [
        { kind: 'data', data: { key: 'grüße', list: [1, 'a', { deep: true }] } },
        { kind: 'file', file: { bytes: Buffer.from([0, 127, 255]).toString('base64'), mimeType: 'image/png' } },
        { kind: 'file', file: { uri: 'https://example.com/a.txt', mimeType: 'text/plain' } },
      ];
      const task = (await (await client('echo')).sendMessage({ message: message('', { parts }) })) as Task;
      expect(task.artifacts![0]!.parts).toMatchObject(parts);
    });

    it('streams to the end', async () => {
      const kinds: string[] = [];
      for await (const event of (await client('slow')).sendMessageStream({ message: message('one two three') }))
        kinds.push(event.kind);
      expect(kinds[0]).toBe('task');
      expect(kinds.filter((kind) => kind === 'artifact-update')).toHaveLength(3);
      expect(kinds.at(-1)).toBe('status-update');
    });

    it('answers a question', async () => {
      const one = await client('asks');
      const asked = (await one.sendMessage({ message: message('paint') })) as Task;
      expect(asked.status.state).toBe('input-required');
      const answer = message('red', { taskId: asked.id, contextId: asked.contextId });
      const done = (await one.sendMessage({ message: answer })) as Task;
      expect([done.id, done.status.state]).toEqual([asked.id, 'completed']);
    });

    it('follows a task, cancels it, and gets the error of an unknown task', async () => {
      const one = await client('asleep');
      const { id } = await begin(one);
      const events = one.resubscribeTask({ id });
      expect((await events.next()).value).toMatchObject({ kind: 'task', id });
      expect((await one.cancelTask({ id })).status.state).toBe('canceled');
      const rest: unknown[] = [];
      for await (const event of events) rest.push(event);
      expect(rest.at(-1)).toMatchObject({ kind: 'status-update', taskId: id, status: { state: 'canceled' } });
      await expect(one.getTask({ id: '01900000-0000-7000-8000-000000000000' })).rejects.toMatchObject({
        name: 'TaskNotFoundError',
      });
    });

    it('stores, reads, lists and deletes a push configuration', async () => {
      const one = await client('asleep');
      const { id: taskId } = await begin(one);
      const pushNotificationConfig = { id: 'mine', url: 'http://127.0.0.1:9/hook', token: 't-1' };
      const stored = await one.setTaskPushNotificationConfig({ taskId, pushNotificationConfig });
      const { url } = pushNotificationConfig;
      expect(stored).toMatchObject({ taskId, pushNotificationConfig: { id: 'mine', url } });
      const named = { id: taskId, pushNotificationConfigId: 'mine' };
      expect(await one.getTaskPushNotificationConfig(named)).toMatchObject({ taskId, pushNotificationConfig: { url } });
      const list = async () => (await one.listTaskPushNotificationConfig({ id: taskId })).length;
      expect(await list()).toBe(1);
      await one.deleteTaskPushNotificationConfig(named);
      expect(await list()).toBe(0);
      await one.cancelTask({ id: taskId });
    });
  });

  describe.each(bindings)('as an agent over %s', (binding) => {
    let agent: OlderSdkAgent;
    let slug: string;
    const receiver = () => agent.received.at(-1)!;
    const send = (name: string, text: string, more: object = {}) => {
      const params = { message: { ...message(text), metadata: { skillId: name }, ...more } };
      const body = { jsonrpc: '2.0', id: 1, method: 'message/send', params };
      return gateway.call('POST', `/a2a/agents/${slug.replaceAll('_', '-')}-${name}`, body);
    };

    beforeAll(async () => {
      agent = await startOlderSdkAgent(binding);
      const { status, body } = await gateway.call('POST', '/api/a2a/agents', { url: agent.url });
      expect(status).toBe(201);
      slug = body.slug;
      for (const skillId of ['echo', 'slow', 'ask'])
        await publish(gateway, {
          name: `${slug.replaceAll('_', '-')}-${skillId}`,
          executor: { kind: 'remote', agentId: body.id, skillId },
        });
    });
    afterAll(() => agent.close());

    it('its skill is a tool, and it gets the arguments of the call', async () => {
      const args = { said: 'ünïcode ✓', list: [1, 'a', { deep: true }] };
      const { result } = await gateway.rpc('tools/call', { name: `${slug}.echo`, arguments: args });
      expect(result.structuredContent).toEqual(args);
      expect(receiver().parts).toMatchObject([{ kind: 'data', data: args }]);
    });

    it('answers behind a published agent', async () => {
      const { body } = await send('echo', 'hello');
      expect([body.result.status.state, textOf(body.result.artifacts[0])]).toEqual(['completed', ['hello']]);
    });

    it('asks, and gets the answer', async () => {
      const asked = (await send('ask', 'paint')).body.result as Task;
      expect([asked.status.state, textOf(asked.status.message!)]).toEqual(['input-required', ['Which one?']]);
      const { id: taskId, contextId } = asked;
      const { result } = (await send('ask', 'red', { taskId, contextId })).body;
      expect([result.id, result.status.state]).toEqual([taskId, 'completed']);
      expect(textOf(receiver())).toEqual(['red']);
    });

    it('works until it is canceled', async () => {
      const count = agent.received.length;
      const params = { message: message('work'), configuration: { blocking: false } };
      const path = `/a2a/agents/${slug.replaceAll('_', '-')}-slow`;
      const rpc = (method: string, given: object) =>
        gateway.call('POST', path, { jsonrpc: '2.0', id: 1, method, params: given });
      const { id } = (await rpc('message/send', params)).body.result as Task;
      await eventually(
        () => Promise.resolve(agent.received.length),
        (received) => received > count,
      );
      expect((await rpc('tasks/cancel', { id })).body.result.status.state).toBe('canceled');
      await eventually(
        () => Promise.resolve(agent.canceled),
        (canceled) => canceled.length === 1,
      );
    });
  });
});
