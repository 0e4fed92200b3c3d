import {
  AgentCard,
  Message as SdkMessage,
  SendMessageRequest,
  StreamResponse as SdkEvent,
  Task as SdkTask,
} from '@a2a-js/sdk';
import { JsonRpcTransportFactory, RestTransportFactory, type Transport } from '@a2a-js/sdk/client';
import { LegacyJsonRpcTransport, LegacyRestTransport } from '@a2a-js/sdk/compat/v0_3/client';
import { TaskNotFoundError } from '@a2a-js/sdk/errors';
import { RialtoError } from '../../kernel/errors.js';
import type { Json } from '../../kernel/json.js';
import { errorResponse, resultResponse } from '../jsonrpc.js';
import { formatEvent } from '../sse.js';
import type { OperationNamed, OperationValues } from './dialect.js';
import { dialects } from './dialects.js';
import { httpError, jsonRpcError } from './error/errors.js';
import type { StreamResponse, Task } from './model.js';
import { negotiate } from './card/negotiate.js';
import type { Decoded, Operation, OperationName, SendParams } from './request/operations.js';
import { decodeRest, encodeRestEvent, encodeRestResult, matchRest } from './rest/rest.js';

/*
 * Runs the official clients, in both versions and both HTTP bindings, against a simulated agent: their requests pass
 * the decoders, and a fixed value returns through the encoders.
 */

const task: Task = {
  id: 't1',
  contextId: 'c1',
  status: {
    state: 'TASK_STATE_COMPLETED',
    message: { messageId: 'm2', contextId: 'c1', taskId: 't1', role: 'ROLE_AGENT', parts: [{ text: 'done' }] },
    timestamp: '2026-01-01T00:00:00.000Z',
  },
  artifacts: [{ artifactId: 'a1', parts: [{ data: { a: [1, null] } }, { raw: 'aGk=', mediaType: 'text/plain' }] }],
};
const config = {
  id: 'p1',
  taskId: 't1',
  url: 'https://a.example/hook',
  token: 'x',
  authentication: { scheme: 'Bearer', credentials: 'y' },
};
const events: StreamResponse[] = [
  { task: { id: 't1', contextId: 'c1', status: { state: 'TASK_STATE_WORKING' } } },
  { artifactUpdate: { taskId: 't1', contextId: 'c1', artifact: task.artifacts![0]!, append: true, lastChunk: true } },
  { statusUpdate: { taskId: 't1', contextId: 'c1', status: task.status } },
];
const values: OperationValues = {
  SendMessage: { task },
  SendStreamingMessage: events[0]!,
  GetTask: task,
  ListTasks: { tasks: [task], nextPageToken: '', pageSize: 50, totalSize: 1 },
  CancelTask: task,
  SubscribeToTask: events[0]!,
  CreateTaskPushNotificationConfig: config,
  GetTaskPushNotificationConfig: config,
  ListTaskPushNotificationConfigs: { configs: [config] },
  DeleteTaskPushNotificationConfig: undefined,
  GetExtendedAgentCard: { name: 'agent', capabilities: {}, skills: [], defaultInputModes: [], defaultOutputModes: [] },
};

/** The decoded operations, in order. */
const seen: Operation[] = [];
const last = () => seen.at(-1);
beforeEach(() => seen.splice(0));

function operationOf(decoded: Decoded): OperationNamed<OperationName> {
  if (!decoded.ok) throw new RialtoError(decoded.code, { message: decoded.message, violations: decoded.violations });
  seen.push(decoded.operation);
  if (decoded.operation.name === 'GetTask' && decoded.operation.params.id === 'absent') {
    throw new RialtoError('task_not_found', { data: { taskId: 'absent' } });
  }
  return decoded.operation;
}

const isStream = ({ name }: Operation) => name === 'SendStreamingMessage' || name === 'SubscribeToTask';
const sse = (frames: Json[]) =>
  new Response(frames.map((frame) => formatEvent({ data: JSON.stringify(frame) })).join(''), {
    headers: { 'Content-Type': 'text/event-stream' },
  });

const rpcAgent: typeof fetch = (_url, init) => {
  const { id, method, params } = JSON.parse(init!.body as string) as { id: number; method: string; params: unknown };
  const negotiated = negotiate(method, new Headers(init!.headers).get('A2A-Version') ?? undefined);
  const dialect = dialects[negotiated.ok ? negotiated.version : '1.0'];
  try {
    const operation = operationOf(dialect.decode(method, params));
    if (isStream(operation)) {
      return Promise.resolve(
        sse(events.map((event) => resultResponse(id, dialect.encodeEvent(event)) as never as Json)),
      );
    }
    return Promise.resolve(Response.json(resultResponse(id, dialect.encodeResult(operation, values[operation.name]))));
  } catch (error) {
    const { code, message, data } = jsonRpcError(error);
    return Promise.resolve(Response.json(errorResponse(id, code, message, data)));
  }
};

const restAgent: typeof fetch = (url, init) => {
  const { pathname, searchParams } = new URL(url);
  const match = matchRest(init!.method!, pathname.replace('/agent', ''));
  if (!match || 'allow' in match) throw new Error(`no match for ${init!.method} ${pathname}`);
  try {
    const body = init!.body ? (JSON.parse(init!.body as string) as Json) : undefined;
    const operation = operationOf(decodeRest(match, searchParams, body));
    if (match.stream) return Promise.resolve(sse(events.map((event) => encodeRestEvent(match.version, event))));
    const result = encodeRestResult(match.version, operation, values[operation.name]);
    const text = result === undefined ? null : JSON.stringify(result);
    return Promise.resolve(new Response(text, { status: match.successStatus }));
  } catch (error) {
    const { status, body } = httpError(error, { version: match.version });
    return Promise.resolve(Response.json(body, { status }));
  }
};

const endpoint = 'http://agent.test/agent';
const cardOf = (protocolBinding: string) =>
  AgentCard.fromJSON({ supportedInterfaces: [{ url: endpoint, protocolBinding, protocolVersion: '1.0' }] });
const clients: [string, () => Promise<Transport>, 'v1' | 'v0.3'][] = [
  [
    'JSON-RPC 1.0',
    () => new JsonRpcTransportFactory({ fetchImpl: rpcAgent }).create(endpoint, cardOf('JSONRPC')),
    'v1',
  ],
  ['REST 1.0', () => new RestTransportFactory({ fetchImpl: restAgent }).create(endpoint, cardOf('HTTP+JSON')), 'v1'],
  ['JSON-RPC 0.3', () => Promise.resolve(new LegacyJsonRpcTransport({ endpoint, fetchImpl: rpcAgent })), 'v0.3'],
  ['REST 0.3', () => Promise.resolve(new LegacyRestTransport({ endpoint, fetchImpl: restAgent })), 'v0.3'],
];

const message = {
  messageId: 'm1',
  contextId: 'c1',
  role: 'ROLE_USER' as const,
  parts: [{ text: 'hi 😀' }, { raw: 'AP8B', mediaType: 'a/b' }, { data: { a: { b: null } } }],
  metadata: { k: 1 },
};
const request = (configuration: object) => SendMessageRequest.fromJSON({ tenant: '', message, configuration });
const taskJson = (result: object) => SdkTask.toJSON(result as SdkTask);

async function all(stream: AsyncIterable<SdkEvent>): Promise<unknown[]> {
  const read: unknown[] = [];
  for await (const event of stream) read.push(SdkEvent.toJSON(event));
  return read;
}

describe.each(clients)('the official client of %s', (_name, connect, format) => {
  it('sends a message and reads the task', async () => {
    const client = await connect();
    const result = await client.sendMessage(request({ historyLength: 2, taskPushNotificationConfig: { url: 'u' } }));
    expect(last()).toMatchObject({ name: 'SendMessage', params: { message, historyLength: 2 } });
    expect((last()!.params as SendParams).pushConfig).toEqual({ url: 'u', format });
    expect((last()!.params as SendParams).returnImmediately).toBeUndefined();
    expect(taskJson(result)).toMatchObject(task);
  });

  it('reads a message as the answer', async () => {
    const answer = task.status.message!;
    const client = await connect();
    values.SendMessage = { message: answer };
    const result = await client.sendMessage(request({}));
    values.SendMessage = { task };
    expect(SdkMessage.toJSON(result as SdkMessage)).toMatchObject(answer);
  });

  it('does not wait when the client asks for that', async () => {
    const client = await connect();
    await client.sendMessage(request({ returnImmediately: true }));
    expect(last()).toMatchObject({ params: { returnImmediately: true } });
  });

  it('reads a stream and a subscription', async () => {
    const client = await connect();
    const expected = events.map((event) => expect.objectContaining({ [Object.keys(event)[0]!]: expect.anything() }));
    expect(await all(client.sendMessageStream(request({})))).toEqual(expected);
    const read = await all(client.resubscribeTask({ tenant: '', id: 't1' }));
    expect(last()).toEqual({ name: 'SubscribeToTask', params: { id: 't1' } });
    expect(read.at(-1)).toMatchObject(events.at(-1)!);
  });

  it('reads and cancels a task', async () => {
    const client = await connect();
    expect(taskJson(await client.getTask({ tenant: '', id: 'a/b:c', historyLength: 1 }))).toMatchObject(task);
    expect(last()).toEqual({ name: 'GetTask', params: { id: 'a/b:c', historyLength: 1 } });
    expect(taskJson(await client.cancelTask({ tenant: '', id: 't1', metadata: undefined }))).toMatchObject(task);
    expect(last()).toEqual({ name: 'CancelTask', params: { id: 't1' } });
  });

  it('reads that a task does not exist', async () => {
    const client = await connect();
    await expect(client.getTask({ tenant: '', id: 'absent' })).rejects.toBeInstanceOf(TaskNotFoundError);
  });

  it('creates, reads, lists and deletes push configurations', async () => {
    const client = await connect();
    const given = { tenant: '', ...config };
    expect(await client.createTaskPushNotificationConfig(given)).toMatchObject(config);
    expect(last()).toEqual({ name: 'CreateTaskPushNotificationConfig', params: { ...config, format } });
    const named = { tenant: '', taskId: 't1', id: 'p1' };
    expect(await client.getTaskPushNotificationConfig(named)).toMatchObject(config);
    expect(last()!.params).toEqual({ taskId: 't1', id: 'p1' });
    const list = await client.listTaskPushNotificationConfig({ tenant: '', taskId: 't1', pageSize: 0, pageToken: '' });
    expect(list.configs).toEqual([expect.objectContaining(config)]);
    await client.deleteTaskPushNotificationConfig(named);
    expect(last()).toEqual({ name: 'DeleteTaskPushNotificationConfig', params: { taskId: 't1', id: 'p1' } });
  });

  it('asks for the extended card', async () => {
    await (await connect()).getExtendedAgentCard({ tenant: '' });
    expect(last()).toEqual({ name: 'GetExtendedAgentCard', params: {} });
  });
});

describe.each(clients.slice(0, 2))('the official client of %s', (_name, connect) => {
  it('lists tasks', async () => {
    const client = await connect();
    const listed = await client.listTasks({
      tenant: '',
      contextId: 'c1',
      status: 2,
      pageSize: 5,
      pageToken: '',
      statusTimestampAfter: '2026-01-01T00:00:00Z',
      includeArtifacts: true,
    });
    expect(listed).toMatchObject({ pageSize: 50, totalSize: 1, nextPageToken: '' });
    expect(last()!.params).toEqual({
      contextId: 'c1',
      status: 'TASK_STATE_WORKING',
      pageSize: 5,
      statusTimestampAfter: Date.UTC(2026, 0, 1),
      includeArtifacts: true,
    });
  });
});
