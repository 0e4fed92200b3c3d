import {
  ListTasksRequest,
  Role,
  SendMessageRequest,
  TaskPushNotificationConfig,
  TaskState,
  type Message,
  type Task,
} from '@a2a-js/sdk';
import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  type Client,
} from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import { startDeployAgent } from '../../src/demo/agents/deploy-agent.js';
import { startWeatherAgent } from '../../src/demo/agents/weather-agent.js';
import { rawRequest } from '../support/clients/raw-http.js';
import { startSdkAgentV03, startSdkAgentV1, startSdkGrpcAgent, type SdkAgent } from '../support/stubs/sdk-agents.js';
import { startStubAgent } from '../support/stubs/stub-agent.js';
import { ask, asyncTask, data, multi, never, stream, text } from '../support/stubs/stub-behaviours.js';
import * as be from '../support/stubs/stub-behaviours.js';
import type { Behaviour } from '../support/stubs/stub-call.js';
import type { Wire } from '../support/stubs/stub-wire.js';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

function keep<Agent extends { close(): Promise<void> }>(agent: Agent): Agent {
  closers.push(() => agent.close());
  return agent;
}

const legacyCompat = { enabled: true };
type Binding = 'JSONRPC' | 'HTTP+JSON' | 'GRPC';

function clientOf(url: string, binding: Binding, path?: string): Promise<Client> {
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [
      new JsonRpcTransportFactory({ legacyCompat }),
      new RestTransportFactory({ legacyCompat }),
      new GrpcTransportFactory(),
    ],
    preferredTransports: [binding],
    cardResolver: new DefaultAgentCardResolver({ legacyCompat }),
  });
  return new ClientFactory(options).createFromUrl(url, path);
}

function request(parts: Wire[], more: Wire = {}, returnImmediately = false): SendMessageRequest {
  const message = { messageId: `m-${Math.random()}`, role: 'ROLE_USER', parts, ...more };
  return SendMessageRequest.fromJSON({ message, configuration: { returnImmediately } });
}

const stateOf = (task: Task) => task.status?.state;
const contentsOf = (task: Task) => task.artifacts[0]?.parts.map((part) => part.content?.value as unknown);

async function sendTask(client: Client, message: SendMessageRequest): Promise<Task> {
  const result = await client.sendMessage(message);
  if (!('artifacts' in result)) throw new Error('a Task was expected');
  return result;
}

const dialects = [
  ['v1', 'JSONRPC', '1.0'],
  ['v1', 'HTTP+JSON', '1.0'],
  ['v03', 'JSONRPC', '0.3'],
  ['v03', 'HTTP+JSON', '0.3'],
] as const;

describe.each(dialects)('stub agent %s %s by the official client', (card, binding, version) => {
  const start = async (behaviour: Behaviour) => {
    const agent = keep(await startStubAgent({ card, behaviour }));
    const client = await clientOf(agent.url, binding);
    expect(client.protocolVersion).toBe(version);
    return { agent, client };
  };

  it('data and text, in order', async () => {
    const { agent, client } = await start(data({ deep: { ü: [1, null] } }));
    const task = await sendTask(client, request([{ text: 'hi' }]));
    expect(stateOf(task)).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(contentsOf(task)).toEqual([{ deep: { ü: [1, null] } }]);
    agent.set(multi([{ text: 'a' }, { data: { b: 1 } }, { url: 'https://example.com/c', mediaType: 'text/plain' }]));
    expect(contentsOf(await sendTask(client, request([{ text: 'hi' }])))).toEqual([
      'a',
      { b: 1 },
      'https://example.com/c',
    ]);
  });

  it('a bare message', async () => {
    const { client } = await start(be.message([{ text: 'just so' }]));
    const message = (await client.sendMessage(request([{ text: 'hi' }]))) as Message;
    expect(message.role).toBe(Role.ROLE_AGENT);
    expect(message.parts[0]?.content).toEqual({ $case: 'text', value: 'just so' });
  });

  it('polls, a question with its answer, a cancel', async () => {
    const { agent, client } = await start(asyncTask(2, text('late')));
    const { id } = await sendTask(client, request([{ text: 'hi' }]));
    const get = () => client.getTask({ tenant: '', id });
    expect(stateOf(await get())).toBe(TaskState.TASK_STATE_WORKING);
    expect(contentsOf(await get())).toEqual(['late']);
    agent.set(ask('Which?', text('thanks')));
    const asked = await sendTask(client, request([{ text: 'hi' }]));
    expect(stateOf(asked)).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    const answered = await sendTask(client, request([{ text: 'that' }], { taskId: asked.id }));
    expect([answered.id, contentsOf(answered)]).toEqual([asked.id, ['thanks']]);
    agent.set(never);
    const endless = await sendTask(client, request([{ text: 'hi' }]));
    const canceled = await client.cancelTask({ tenant: '', id: endless.id, metadata: undefined });
    expect(stateOf(canceled)).toBe(TaskState.TASK_STATE_CANCELED);
    expect(agent.cancels).toEqual([endless.id]);
  });

  it('a stream, and its errors', async () => {
    const chunk = { artifact: 'a', parts: [{ text: 'x' }] };
    const steps = [{ task: 'working' }, chunk, { ...chunk, append: true, afterMs: 1 }, { status: 'completed' }];
    const { agent, client } = await start(stream(steps));
    const seen = [];
    for await (const event of client.sendMessageStream(request([{ text: 'hi' }]))) seen.push(event.payload?.$case);
    expect(seen).toEqual(['task', 'artifactUpdate', 'artifactUpdate', 'statusUpdate']);
    const folded = await sendTask(client, request([{ text: 'hi' }]));
    expect(contentsOf(folded)).toEqual(['x', 'x']);
    agent.set(be.jsonrpcError(-32004, 'no'));
    await expect(client.sendMessage(request([{ text: 'hi' }]))).rejects.toThrow('no');
    await expect(client.getTask({ tenant: '', id: 'nobody' })).rejects.toThrow('not found');
  });

  it('a subscription: the snapshot, no events, then the cancel', async () => {
    const { client } = await start(never);
    const { id } = await sendTask(client, request([{ text: 'hi' }]));
    const seen = [];
    for await (const event of client.resubscribeTask({ tenant: '', id })) {
      seen.push(event.payload?.$case);
      if (seen.length === 1) await client.cancelTask({ tenant: '', id, metadata: undefined });
    }
    expect(seen).toEqual(['task', 'statusUpdate']);
  });
});

describe('other stub cards by the official client', () => {
  it('a 0.2 peer is found at agent.json', async () => {
    const agent = keep(await startStubAgent({ card: 'old', behaviour: text('old but sound') }));
    const client = await clientOf(agent.url, 'JSONRPC', '/.well-known/agent.json');
    expect(contentsOf(await sendTask(client, request([{ text: 'hi' }])))).toEqual(['old but sound']);
    expect(agent.requests[0]!.dialect).toBe('v03-jsonrpc');
  });

  it('lists its tasks, stores a push configuration', async () => {
    const agent = keep(await startStubAgent({ capabilities: { streaming: true, pushNotifications: true } }));
    const client = await clientOf(agent.url, 'JSONRPC');
    const { id: taskId } = await sendTask(client, request([{ text: 'hi' }]));
    const { tasks } = await client.listTasks(ListTasksRequest.fromJSON({}));
    expect(tasks.map((task) => task.id)).toEqual([taskId]);
    const config = TaskPushNotificationConfig.fromJSON({ taskId, url: 'https://example.com/hook' });
    const stored = await client.createTaskPushNotificationConfig(config);
    expect(stored).toMatchObject({ id: 'stub-push', taskId, url: 'https://example.com/hook' });
  });

  it('a hybrid is called with v1.0', async () => {
    const agent = keep(await startStubAgent({ card: 'hybrid' }));
    const client = await clientOf(agent.url, 'HTTP+JSON');
    await sendTask(client, request([{ text: 'hi' }]));
    expect(agent.requests[0]!.dialect).toBe('v1-rest');
  });
});

const sdkAgents: [string, () => Promise<SdkAgent>, Binding, string][] = [
  ['v1.0 JSON-RPC', startSdkAgentV1, 'JSONRPC', '1.0'],
  ['v1.0 REST', startSdkAgentV1, 'HTTP+JSON', '1.0'],
  ['v1.0 gRPC', startSdkGrpcAgent, 'GRPC', '1.0'],
  ['v0.3 JSON-RPC', startSdkAgentV03, 'JSONRPC', '0.3'],
  ['v0.3 REST', startSdkAgentV03, 'HTTP+JSON', '0.3'],
];

describe.each(sdkAgents)('SDK agent %s', (_name, startAgent, binding, version) => {
  it('echoes data and text', async () => {
    const agent = keep(await startAgent());
    const client = await clientOf(agent.url, binding);
    expect(client.protocolVersion).toBe(version);
    const asked = request([{ data: { a: 1 } }], { metadata: { skillId: 'echo' } });
    expect(contentsOf(await sendTask(client, asked))).toEqual([{ received: { a: 1 }, skillId: 'echo' }]);
    expect(contentsOf(await sendTask(client, request([{ text: 'hi' }])))).toEqual(['echo: hi']);
  });

  it('asks back, works slowly, and can be canceled', async () => {
    const agent = keep(await startAgent());
    const client = await clientOf(agent.url, binding);
    const asked = await sendTask(client, request([{ text: 'do' }], { metadata: { skillId: 'ask' } }));
    expect(stateOf(asked)).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    const { id, contextId } = asked;
    const answered = await sendTask(
      client,
      request([{ text: 'it' }], { taskId: id, contextId, metadata: { skillId: 'ask' } }),
    );
    expect(contentsOf(answered)).toEqual(['echo: it']);
    const slow = await sendTask(client, request([{ text: 'go' }], { metadata: { skillId: 'slow' } }, true));
    expect(stateOf(slow)).toBe(TaskState.TASK_STATE_WORKING);
    const canceled = await client.cancelTask({ tenant: '', id: slow.id, metadata: undefined });
    expect(stateOf(canceled)).toBe(TaskState.TASK_STATE_CANCELED);
    expect(agent.executor.canceled).toEqual([slow.id]);
  });
});

describe('SDK agent v0.3', () => {
  it('RE-18 reads message.skill.skillId', async () => {
    const agent = keep(await startSdkAgentV03());
    const parts = [{ kind: 'data', data: { a: 1 } }];
    const message = { kind: 'message', role: 'user', messageId: 'm', parts, skill: { skillId: 'echo' } };
    const body = {
      jsonrpc: '2.0',
      id: 1,
      method: 'message/send',
      params: { message, configuration: { blocking: true } },
    };
    const answer = await rawRequest(agent.url, { headers: { 'content-type': 'application/json' }, body });
    const { result } = JSON.parse(answer.text) as { result: { artifacts: { parts: unknown[] }[] } };
    expect(result.artifacts[0]!.parts[0]).toMatchObject({ data: { received: { a: 1 }, skillId: 'echo' } });
  });
});

describe('demo agents', () => {
  it('weather: a schema on its card, the same answer twice, an error for a missing city', async () => {
    const agent = keep(await startWeatherAgent());
    const card = JSON.parse((await rawRequest(`${agent.url}/.well-known/agent-card.json`)).text) as { skills: Wire[] };
    expect(card.skills[0]).toMatchObject({ id: 'forecast', inputSchema: { required: ['city'] } });
    for (const binding of ['JSONRPC', 'HTTP+JSON'] as const) {
      const client = await clientOf(agent.url, binding);
      const call = (skillId: string, args: Wire) =>
        sendTask(client, request([{ data: args }], { metadata: { skillId } }));
      const first = contentsOf(await call('forecast', { city: 'Lisbon', days: 3 }));
      expect(first).toEqual(contentsOf(await call('forecast', { city: 'Lisbon', days: 3 })));
      expect(first).toMatchObject([{ city: 'Lisbon', days: [{ day: 1 }, { day: 2 }, { day: 3 }] }]);
      expect(contentsOf(await call('alerts', { region: 'north' }))).toMatchObject([{ region: 'north' }]);
      expect(stateOf(await call('forecast', {}))).toBe(TaskState.TASK_STATE_FAILED);
      const sendText = (words: string) => sendTask(client, request([{ text: words }]));
      expect(contentsOf(await sendText(' Lisbon\n'))).toMatchObject([{ city: 'Lisbon' }]);
      expect(contentsOf(await sendText('{"city":"Lisbon","days":3}'))).toEqual(first);
    }
  });

  it('deploy: v0.3, the default branch is main', async () => {
    const agent = keep(await startDeployAgent());
    const client = await clientOf(agent.url, 'JSONRPC');
    expect(client.protocolVersion).toBe('0.3');
    const task = await sendTask(client, request([{ data: { projectId: 'shop' } }]));
    expect(contentsOf(task)).toMatchObject([{ projectId: 'shop', branch: 'main', status: 'ready' }]);
  });
});
