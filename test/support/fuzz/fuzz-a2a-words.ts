import { hostileTexts, hostileValues } from './fuzz-json.js';
import type { Random } from './random.js';

/*
 * Generates valid A2A requests in every version and older spelling that clients use. fuzz-a2a-spoil.ts corrupts them
 * afterwards.
 */

/** A task that exists or has existed. */
export interface KnownTask {
  readonly id: string;
  readonly contextId: string;
  readonly agent: string;
}

/** The names that a request may use. */
export interface Names {
  readonly task: KnownTask;
  readonly others: readonly KnownTask[];
  /** The context of a new task. No other request uses it. */
  readonly context: string;
  readonly urls: readonly string[];
}

export interface RpcCall {
  readonly method: string;
  readonly params: unknown;
}

type Make = (random: Random, names: Names) => RpcCall;
type Value = Record<string, unknown>;

const maybe = (random: Random, probability: number, value: () => Value): Value =>
  random.chance(probability) ? value() : {};

const plainTexts = ['hello', 'the quick brown fox', 'déjà vu 😀', 'tck-cancel', 'a\nb\tc', '{"json":true}'] as const;

export function someText(random: Random): string {
  const usual = random.chance(0.7) ? random.pick(plainTexts) : random.pick(hostileTexts).toWellFormed();
  return usual.replaceAll('\u0000', '') || 'x';
}

/** Returns arbitrary JSON for a data part or for metadata. */
function someData(random: Random): unknown {
  return random.pick<() => unknown>([
    () => ({ branch: 'main', count: 42, deep: { list: [1, 2, { three: null }] } }),
    () => ({ [someText(random)]: someText(random), constructor: 1, toString: 'x' }),
    () => random.pick(hostileValues.filter((value) => typeof value !== 'string')),
    () => someText(random),
    () => Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`member${index}`, index])),
    () => (random.chance(0.05) ? wide(random) : null),
  ])();
}

const wide = (random: Random) =>
  Object.fromEntries(Array.from({ length: random.pick([20_000, 80_000]) }, (_, index) => [`k${index}`, 'v']));

const metadata = (random: Random): Value => ({
  metadata: random.chance(0.9) ? { [someText(random)]: someData(random) } : { choice_id: 'yes', skillId: 'echo' },
});

// v1.0

function partOfNow(random: Random): Value {
  const content = random.pick<() => Value>([
    () => ({ text: someText(random) }),
    () => ({ text: someText(random) }),
    () => ({ text: 'word '.repeat(random.whole(4_000)) }),
    () => ({ raw: random.pick(['', 'aGk=', 'aGk', '-_-_', 'AAAA'.repeat(2_000)]) }),
    () => ({ url: random.pick(['https://example.com/a.png', 'file:///etc/passwd', 'data:,x', 'x']) }),
    () => ({ data: someData(random) }),
  ])();
  const file = maybe(random, 0.2, () => ({ filename: someText(random), mediaType: 'text/plain' }));
  return { ...content, ...file, ...maybe(random, 0.1, () => metadata(random)) };
}

const partsOf = (random: Random, part: (random: Random) => Value): Value[] =>
  Array.from({ length: random.chance(0.97) ? 1 + random.whole(3) : 100 }, () => part(random));

/** Returns the target of a message: a task, a context, or none. */
function place(random: Random, { task, context }: Names): Value {
  return random.pick<() => Value>([
    () => ({ contextId: context }),
    () => ({ contextId: context }),
    () => ({ taskId: task.id }),
    () => ({ taskId: task.id, contextId: task.contextId }),
    () => ({ contextId: task.contextId }),
    () => ({}),
  ])();
}

function references(random: Random, { others }: Names): Value {
  return maybe(random, 0.1, () => ({ referenceTaskIds: [random.pick(others).id] }));
}

function messageOfNow(random: Random, names: Names): Value {
  return {
    messageId: `m-${random.whole(1e9)}`,
    role: 'ROLE_USER',
    parts: partsOf(random, partOfNow),
    ...place(random, names),
    ...references(random, names),
    ...maybe(random, 0.2, () => metadata(random)),
    ...maybe(random, 0.1, () => ({ extensions: ['https://example.com/extension'] })),
  };
}

function pushOfNow(random: Random, { urls }: Names): Value {
  return {
    url: random.pick(urls),
    ...maybe(random, 0.5, () => ({ id: `c-${random.whole(6)}` })),
    ...maybe(random, 0.5, () => ({ token: 'token' })),
    ...maybe(random, 0.3, () => ({ authentication: { scheme: 'Bearer', credentials: 'secret' } })),
  };
}

function sendOfNow(random: Random, names: Names): Value {
  const configuration = maybe(random, 0.6, () => ({
    configuration: {
      ...maybe(random, 0.5, () => ({ returnImmediately: random.chance(0.7) })),
      ...maybe(random, 0.4, () => ({ historyLength: random.pick([0, 1, 2, 100]) })),
      ...maybe(random, 0.3, () => ({ acceptedOutputModes: ['text/plain'] })),
      ...maybe(random, 0.2, () => ({ taskPushNotificationConfig: pushOfNow(random, names) })),
    },
  }));
  return {
    message: messageOfNow(random, names),
    ...configuration,
    ...maybe(random, 0.1, () => metadata(random)),
    ...maybe(random, 0.1, () => ({ idempotencyKey: `key-${random.whole(8)}` })),
    ...maybe(random, 0.1, () => ({ tenant: someText(random) })),
  };
}

function listOfNow(random: Random, { task }: Names): Value {
  return {
    ...maybe(random, 0.4, () => ({ contextId: task.contextId })),
    ...maybe(random, 0.4, () => ({ status: random.pick(['TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED']) })),
    ...maybe(random, 0.6, () => ({ pageSize: random.pick([1, 2, 10]) })),
    ...maybe(random, 0.2, () => ({ pageToken: random.pick(['', 'W10.AAAA', 'x'.repeat(4_096)]) })),
    ...maybe(random, 0.3, () => ({ historyLength: random.whole(3) })),
    ...maybe(random, 0.3, () => ({ includeArtifacts: random.chance(0.5) })),
    ...maybe(random, 0.3, () => ({
      statusTimestampAfter: random.pick([
        '2026-01-31T12:00:00Z',
        '0001-01-01T00:00:00Z',
        '9999-12-31T23:59:59.999999999Z',
        '0000-01-01T00:00:00+14:00',
        '9999-12-31T23:59:59-14:00',
        '2016-12-31T23:59:60Z',
      ]),
    })),
  };
}

const byTaskNow = (more: (random: Random, names: Names) => Value = () => ({})) => {
  return (random: Random, names: Names): Value => ({ id: names.task.id, ...more(random, names) });
};
const configOf = (random: Random, { task }: Names): Value => ({ taskId: task.id, id: `c-${random.whole(6)}` });

/** Generators of the params of the v1.0 operations, for REST and JSON-RPC. */
const paramsOfNow: Readonly<Record<string, (random: Random, names: Names) => Value>> = {
  SendMessage: sendOfNow,
  SendStreamingMessage: sendOfNow,
  GetTask: byTaskNow((random) => maybe(random, 0.5, () => ({ historyLength: random.whole(4) }))),
  ListTasks: listOfNow,
  CancelTask: byTaskNow((random) => maybe(random, 0.2, () => metadata(random))),
  SubscribeToTask: byTaskNow(),
  CreateTaskPushNotificationConfig: (random, names) => ({ taskId: names.task.id, ...pushOfNow(random, names) }),
  GetTaskPushNotificationConfig: configOf,
  ListTaskPushNotificationConfigs: (random, { task }) => ({
    taskId: task.id,
    ...maybe(random, 0.4, () => ({ pageSize: random.whole(4), pageToken: '' })),
  }),
  DeleteTaskPushNotificationConfig: configOf,
  GetExtendedAgentCard: () => ({}),
};

const now: Make = (random, names) => {
  const method = random.chance(0.45) ? 'SendMessage' : random.pick(Object.keys(paramsOfNow));
  return { method, params: paramsOfNow[method]!(random, names) };
};

// v0.3 and older

function partOfThen(random: Random): Value {
  const kind = random.pick(['kind', 'kind', 'type']);
  return random.pick<() => Value>([
    () => ({ [kind]: 'text', text: someText(random) }),
    () => ({ [kind]: 'text', text: someText(random), ...metadata(random) }),
    () => ({ [kind]: 'file', file: { bytes: 'aGk=', name: someText(random), mimeType: 'text/plain' } }),
    () => ({ [kind]: 'file', file: { uri: 'https://example.com/a', name: 'a' } }),
    () => ({ [kind]: 'data', data: someData(random) }),
    () => ({ file: { fileWithBytes: 'aGk=' } }),
    () => partOfNow(random),
  ])();
}

function messageOfThen(random: Random, names: Names): unknown {
  const common = { ...place(random, names), ...references(random, names) };
  return random.pick<() => unknown>([
    () => ({
      kind: 'message',
      messageId: `m-${random.whole(1e9)}`,
      role: 'user',
      parts: partsOf(random, partOfThen),
      ...common,
    }),
    () => ({ messageId: 'm', role: 'user', parts: partsOf(random, partOfThen), ...common, ...metadata(random) }),
    () => ({ messageId: 'm', role: 'ROLE_USER', content: partsOf(random, partOfThen), ...common }),
    () => ({ message_id: 'm', role: 'user', parts: [{ text: 'x' }], context_id: names.context }),
    () => ({ role: 'user', parts: [{ type: 'text', text: someText(random) }] }),
    () => ({ skill: { skillId: 'echo' }, parts: [{ kind: 'data', data: someData(random) }] }),
    () => someText(random),
  ])();
}

function pushOfThen(random: Random, { urls }: Names): Value {
  return {
    url: random.pick(urls),
    ...maybe(random, 0.5, () => ({ id: `c-${random.whole(6)}`, token: 'token' })),
    ...maybe(random, 0.3, () => ({ authentication: { schemes: ['Bearer'], credentials: 'secret' } })),
  };
}

function sendOfThen(random: Random, names: Names): Value {
  const configuration = maybe(random, 0.5, () => ({
    configuration: {
      ...maybe(random, 0.6, () => ({ blocking: random.chance(0.6) })),
      ...maybe(random, 0.4, () => ({ historyLength: random.whole(4) })),
      ...maybe(random, 0.3, () => ({ acceptedOutputModes: ['text/plain'] })),
      ...maybe(random, 0.2, () => ({ pushNotificationConfig: pushOfThen(random, names) })),
      ...maybe(random, 0.1, () => ({ pushNotification: pushOfThen(random, names) })),
    },
  }));
  const older = random.pick<() => Value>([
    () => ({}),
    () => ({}),
    () => ({ async: true }),
    () => ({ async_mode: true }),
    () => ({ async_mode: true, webhook_url: random.pick(names.urls) }),
    () => ({ task_id: names.task.id, choice_id: random.pick(['yes', 'no']) }),
    () => ({ contextId: names.context, idempotencyKey: `key-${random.whole(8)}` }),
    () => ({ taskId: 'session-1', correlationId: 7 }),
  ])();
  return { message: messageOfThen(random, names), ...configuration, ...older };
}

const byTaskThen = (_random: Random, { task }: Names): Value => ({ id: task.id });
const pushSet = (random: Random, names: Names): Value => ({
  taskId: names.task.id,
  pushNotificationConfig: pushOfThen(random, names),
});
const pushNamed = (random: Random, { task }: Names): Value => ({
  id: task.id,
  ...maybe(random, 0.7, () => ({ pushNotificationConfigId: `c-${random.whole(6)}` })),
});

/** Generators of the params of the v0.3 methods, and of the methods of older or non-standard clients. */
const paramsOfThen: Readonly<Record<string, (random: Random, names: Names) => Value>> = {
  'message/send': sendOfThen,
  'message/stream': sendOfThen,
  'tasks/send': sendOfThen,
  'tasks/sendSubscribe': sendOfThen,
  'tasks/get': (random, names) => ({ ...byTaskThen(random, names), historyLength: random.whole(4) }),
  'tasks/cancel': byTaskThen,
  'tasks/resubscribe': byTaskThen,
  'tasks/subscribe': byTaskThen,
  'tasks/pushNotificationConfig/set': pushSet,
  'tasks/pushNotificationConfig/get': pushNamed,
  'tasks/pushNotificationConfig/list': byTaskThen,
  'tasks/pushNotificationConfig/delete': pushNamed,
  'tasks/pushNotification/set': pushSet,
  'tasks/pushNotification/get': byTaskThen,
  'tasks/pushNotification/list': byTaskThen,
  'tasks/pushNotification/delete': byTaskThen,
  'agent/getAuthenticatedExtendedCard': () => ({}),
  'agent/authenticatedExtendedCard': () => ({}),
};

const then: Make = (random, names) => {
  const method = random.chance(0.4) ? 'message/send' : random.pick(Object.keys(paramsOfThen));
  return { method, params: paramsOfThen[method]!(random, names) };
};

export const methodNames: readonly string[] = [...Object.keys(paramsOfNow), ...Object.keys(paramsOfThen)];

/** Generates one JSON-RPC request that is valid for an agent with all features. */
export function rpcCallOf(random: Random, names: Names): RpcCall {
  return random.pick([now, then])(random, names);
}

export interface RestCall {
  readonly method: string;
  /** Path below the url of the agent. */
  readonly path: string;
  readonly body?: unknown;
  readonly query?: Value;
}

const verbs: Readonly<Record<string, (params: Value) => RestCall>> = {
  SendMessage: (body) => ({ method: 'POST', path: '/message:send', body }),
  SendStreamingMessage: (body) => ({ method: 'POST', path: '/message:stream', body }),
  GetTask: ({ id, ...query }) => ({ method: 'GET', path: `/tasks/${id as string}`, query }),
  ListTasks: (query) => ({ method: 'GET', path: '/tasks', query }),
  CancelTask: ({ id, ...body }) => ({ method: 'POST', path: `/tasks/${id as string}:cancel`, body }),
  SubscribeToTask: ({ id }) => ({ method: 'POST', path: `/tasks/${id as string}:subscribe` }),
  CreateTaskPushNotificationConfig: ({ taskId, ...body }) => ({
    method: 'POST',
    path: `/tasks/${taskId as string}/pushNotificationConfigs`,
    body,
  }),
  GetTaskPushNotificationConfig: ({ taskId, id }) => ({
    method: 'GET',
    path: `/tasks/${taskId as string}/pushNotificationConfigs/${id as string}`,
  }),
  ListTaskPushNotificationConfigs: ({ taskId, ...query }) => ({
    method: 'GET',
    path: `/tasks/${taskId as string}/pushNotificationConfigs`,
    query,
  }),
  DeleteTaskPushNotificationConfig: ({ taskId, id }) => ({
    method: 'DELETE',
    path: `/tasks/${taskId as string}/pushNotificationConfigs/${id as string}`,
  }),
  GetExtendedAgentCard: () => ({ method: 'GET', path: '/extendedAgentCard' }),
};

/** Generates one valid HTTP+JSON request; a path that begins with `/v1` is v0.3. */
export function restCallOf(random: Random, names: Names): RestCall {
  const name = random.chance(0.4) ? 'SendMessage' : random.pick(Object.keys(verbs));
  const isThen = random.chance(0.35);
  const isSend = name.startsWith('Send');
  const params = isThen && isSend ? sendOfThen(random, names) : paramsOfNow[name]!(random, names);
  const call = verbs[name]!(params);
  if (!isThen) return call;
  const path = call.path === '/extendedAgentCard' ? '/card' : call.path;
  const body = name.startsWith('Create')
    ? random.pick<unknown>([
        { config: { pushNotificationConfig: call.body }, configId: 'c-1' },
        { pushNotificationConfig: call.body },
        call.body,
      ])
    : call.body;
  return { ...call, path: `/v1${path}`, ...(body !== undefined && { body }) };
}
