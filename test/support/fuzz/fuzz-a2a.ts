import { frame, type Draft } from './fuzz-frame.js';
import { damage, spoiled } from './fuzz-a2a-spoil.js';
import { methodNames, restCallOf, rpcCallOf, someText, type KnownTask, type Names } from './fuzz-a2a-words.js';
import { headerValues, hostileUrls, queryOf, segment, spoiledPath } from './fuzz-a2a-trimmings.js';
import { hostileTexts, poisons, scramble } from './fuzz-json.js';
import { Random } from './random.js';

/** The facts about the attacked gateway that requests use. The tasks change during the run. */
export interface A2aGround {
  /** Names of published agents. No worker leases the tasks of `mail`, so a caller that waits for one waits long. */
  readonly agents: readonly string[];
  readonly tokens: { readonly admin: string; readonly member: string; readonly stranger: string };
  readonly tasks: readonly KnownTask[];
  /** URLs for push notifications. */
  readonly urls: readonly string[];
}

/** The kinds of door, by the format of their answers. */
export type Door = 'rpc' | 'rest' | 'rest-0.3' | 'api' | 'card';

/** One request, as bytes. */
export interface A2aShot {
  readonly door: Door;
  readonly method: string;
  readonly path: string;
  readonly bytes: Buffer;
  /** True when the bytes are not a correct HTTP request, so the server need not answer. */
  readonly lies: boolean;
  /** True when the path is a valid path of the door, so the answer has the format of the door. */
  readonly plain: boolean;
  /** Milliseconds after which the client disconnects, even without an answer. */
  readonly leaveAfterMs?: number;
  /** A context that only the task of this message has, if it creates a task. */
  readonly context: string;
}

interface Wish extends Draft {
  readonly door: Door;
  plain: boolean;
  /** True when the answer may take any time: a stream, or a task that no worker leases. */
  waits: boolean;
}

/**
 * Returns the shots with this number: one, or several that are sent at the same time. The same seed and ground give the
 * same bytes.
 */
export function volleyOf(seed: number, ground: A2aGround): A2aShot[] {
  const random = new Random(Math.imul(seed + 1, 0x9e3779b1));
  const task = random.pick(ground.tasks);
  const urls = [...ground.urls, random.pick(hostileUrls)];
  const names = (index: number): Names => ({ task, others: ground.tasks, context: `fuzz-${seed}-${index}`, urls });
  if (random.chance(0.04)) return rivals(random, ground, names);
  const make = random.pick([rpc, rpc, rpc, rpc, rest, rest, rest, run, run, work, card, odd]);
  return [finish(make(random, ground, names(0)), random, ground, names(0).context)];
}

/** Builds several concurrent requests for one task. The task must still have one consistent history. */
function rivals(random: Random, ground: A2aGround, names: (index: number) => Names): A2aShot[] {
  const { task } = names(0);
  const path = `/a2a/agents/${task.agent}`;
  const call = (method: string, params: unknown): Wish => ({
    ...rpcAt(path, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })),
    waits: /send|stream|subscribe/i.test(method),
  });
  const wishes: (() => Wish)[] = [
    () => call('CancelTask', { id: task.id }),
    () => call('tasks/cancel', { id: task.id }),
    () => call('SubscribeToTask', { id: task.id }),
    () => call('tasks/resubscribe', { id: task.id }),
    () =>
      call('message/send', {
        message: { messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'on' }], taskId: task.id },
      }),
    () =>
      call('SendStreamingMessage', {
        message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'on' }], taskId: task.id },
      }),
    () => call('CreateTaskPushNotificationConfig', { taskId: task.id, url: ground.urls[0], id: 'rival' }),
    () => call('GetTask', { id: task.id }),
    () => apiAt('POST', `/a2a/tasks/${task.id}/cancel`),
    () => ({ ...apiAt('GET', `/a2a/tasks/${task.id}/events`), waits: true }),
    () => ({ ...apiAt('POST', `/api/a2a/tasks/${task.id}/cancel`) }),
    () => report(random, names(0), 'complete'),
  ];
  return Array.from({ length: 3 + random.whole(5) }, (_, index) => {
    const wish = random.pick(wishes)();
    return finish(wish, random, ground, names(index).context, true);
  });
}

function rpcAt(path: string, text: string): Wish {
  const body = Buffer.from(text);
  return {
    door: 'rpc',
    method: 'POST',
    path,
    headers: [['Content-Type', 'application/json']],
    body,
    plain: true,
    waits: false,
  };
}

function apiAt(method: string, path: string, value?: string): Wish {
  const body = value === undefined ? undefined : Buffer.from(value);
  const headers: Draft['headers'] = body ? [['Content-Type', 'application/json']] : [];
  return { door: 'api', method, path, headers, body, plain: true, waits: false };
}

function rpc(random: Random, ground: A2aGround, names: Names): Wish {
  const agent = random.chance(0.7) ? names.task.agent : random.pick(ground.agents);
  const call = rpcCallOf(random, names);
  const method = random.chance(0.04) ? random.pick([...methodNames, ...hostileTexts, 'm'.repeat(5_000)]) : call.method;
  const id = random.chance(0.9)
    ? 1
    : random.pick<unknown>([null, 'x', '', 1.5, -1, 2 ** 60, undefined, {}, 'i'.repeat(2_000)]);
  const envelope = { jsonrpc: '2.0', id, method, params: call.params };
  const text = random.chance(0.02) ? `[${JSON.stringify(envelope)}]` : spoiled(envelope, damage(random), random);
  const path = random.pick([
    `/a2a/agents/${agent}`,
    `/a2a/agents/${agent}`,
    `/a2a/agents/${agent}`,
    `/a2a/agents/${agent}/`,
    `/a2a/${agent}`,
    '/a2a',
    '/_agent-native/a2a',
  ]);
  return { ...rpcAt(path, text), waits: agent === 'mail' || /stream|subscribe/i.test(text.slice(0, 10_000)) };
}

function rest(random: Random, ground: A2aGround, names: Names): Wish {
  const agent = random.chance(0.7) ? names.task.agent : random.pick(ground.agents);
  const call = restCallOf(random, names);
  const isThen = call.path.startsWith('/v1/');
  const tenant = !isThen && random.chance(0.1) ? `/${segment(random)}` : '';
  const path = random.chance(0.85) ? call.path : spoiledPath(call.path, random);
  const text = call.body === undefined ? undefined : spoiled(call.body, damage(random), random);
  const method = random.chance(0.97)
    ? call.method
    : random.pick(['GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'HEAD', 'OPTIONS']);
  const type = random.pick([
    'application/json',
    'application/json',
    'application/a2a+json',
    'application/A2A+JSON; charset=utf-8',
  ]);
  return {
    door: isThen ? 'rest-0.3' : 'rest',
    method,
    path: `/a2a/agents/${agent}${tenant}${path}${queryOf(call.query ?? {}, random)}`,
    headers: text === undefined ? [] : [['Content-Type', type]],
    body: text === undefined ? undefined : Buffer.from(text),
    plain: tenant === '' && path === call.path,
    waits: agent === 'mail' || /stream|subscribe/i.test(path),
  };
}

/** Builds a request to the run view, or to the views of tasks for administrators. */
function run(random: Random, _ground: A2aGround, { task }: Names): Wish {
  const id = random.chance(0.85) ? task.id : segment(random);
  const filter = { limit: 5, agent: task.agent, state: 'working', contextId: task.contextId, cursor: 'x' };
  const path = random.pick([
    `/a2a/tasks/${id}`,
    `/a2a/tasks/${id}/events`,
    `/a2a/tasks/${id}/cancel`,
    `/a2a/tasks/${id}/${segment(random)}`,
    `/api/a2a/tasks/${id}`,
    `/api/a2a/tasks/${id}/cancel`,
    `/api/a2a/tasks${queryOf(filter, random)}`,
    `/api/webhooks/deliveries${queryOf({ limit: 5, taskId: task.id, status: 'dead', cursor: 'x' }, random)}`,
  ]);
  const method = random.chance(0.95)
    ? path.endsWith('/cancel')
      ? 'POST'
      : 'GET'
    : random.pick(['POST', 'DELETE', 'HEAD', 'PUT']);
  const isReal = id === task.id && !/%|\.\./.test(path);
  return { ...apiAt(method, path), plain: isReal, waits: path.endsWith('/events') };
}

/** Builds a request of an external worker: a lease or a report. */
function work(random: Random, ground: A2aGround, names: Names): Wish {
  if (random.chance(0.25)) {
    const agent = random.chance(0.8) ? 'mail' : random.pick([...ground.agents, segment(random)]);
    const waitMs = random.pick(['0', '0', '1', '-1', '1e9', '60001', 'x', '']);
    return { ...apiAt('POST', `/api/mailbox/${agent}/lease?waitMs=${waitMs}`), plain: !agent.includes('%') };
  }
  return report(random, names, random.pick(['progress', 'artifact', 'ask', 'complete', 'fail', 'heartbeat']));
}

function report(random: Random, { task }: Names, type: string): Wish {
  const parts = [{ text: someText(random) }, { kind: 'data', data: { a: 1 } }];
  const withMessage = { message: { parts, metadata: { a: someText(random) } } };
  const artifact = { artifactId: random.pick(['a', 'b']), name: 'x', parts };
  const more: Record<string, object> = {
    progress: withMessage,
    artifact: { artifact, append: random.chance(0.5), lastChunk: random.chance(0.3) },
    ask: { text: 'which?', kind: 'choice', choices: [{ id: 'yes', label: 'Yes' }], detail: { deep: [1] } },
    complete: { ...withMessage, artifacts: [artifact] },
    fail: { error: someText(random) },
    heartbeat: {},
  };
  const id = `e-${random.whole(1e6)}`;
  const event = { id, type, leaseEpoch: random.pick([1, 2, 2, 3, 3, 4, 5]), ...more[type] };
  const body = random.chance(0.8) ? event : [event, { ...event, id: `${id}-2` }];
  return apiAt('POST', `/api/executions/${task.id}/events`, spoiled(body, damage(random), random));
}

function card(random: Random, { agents }: A2aGround): Wish {
  const agent = random.chance(0.7) ? random.pick(agents) : segment(random);
  const file = random.pick(['.well-known/agent-card.json', '.well-known/agent.json', 'agent.json']);
  const path = random.pick([
    `/a2a/agents/${agent}/${file}`,
    `/a2a/${agent}/${file}`,
    `/.well-known/agent-card.json?org=${encodeURIComponent(someText(random))}`,
    '/.well-known/agent-card.json',
    '/.well-known/jwks.json',
    '/a2a/agents',
  ]);
  const headers: Draft['headers'] = random.chance(0.4)
    ? [['If-None-Match', random.pick(['*', 'W/"x"', '"', '"a", "b"', '"'.repeat(3_000)])]]
    : [['If-Modified-Since', random.pick(['Thu, 01 Jan 1970 00:00:00 GMT', 'never', '9'.repeat(300)])]];
  const method = random.pick(['GET', 'GET', 'GET', 'HEAD', 'OPTIONS', 'POST', 'DELETE']);
  return { door: 'card', method, path, headers, plain: false, waits: false };
}

/** Builds a request with an invalid body to an existing door. */
function odd(random: Random, { agents }: A2aGround, { task }: Names): Wish {
  const agent = random.pick(agents);
  const path = random.pick([
    `/a2a/agents/${agent}`,
    '/a2a',
    '/_agent-native/a2a',
    '/_agent-native/a2a/_process-task',
    `/a2a/agents/${agent}/message:send`,
    `/a2a/agents/${agent}/message:stream`,
    `/a2a/agents/${agent}/tasks/${task.id}:cancel`,
    `/a2a/agents/${agent}/v1/message:send`,
    `/api/executions/${task.id}/events`,
    `/a2a/agents/${segment(random)}`,
  ]);
  const body = random.pick(poisons)();
  // A cancel request with an invalid body still cancels, which is correct.
  return {
    ...apiAt('POST', path),
    body,
    headers: [['Content-Type', random.chance(0.8) ? 'application/json' : 'text/plain']],
    plain: false,
    waits: path.endsWith('stream'),
  };
}

function finish(wish: Wish, random: Random, { tokens }: A2aGround, context: string, willing = false): A2aShot {
  const { headers, door, path } = wish;
  const who = random.next();
  const token = who < 0.85 || willing ? tokens.admin : who < 0.93 ? tokens.member : tokens.stranger;
  if (random.chance(0.98)) headers.push(['Authorization', `Bearer ${token}`]);
  for (const [name, values] of willing ? [] : headerValues)
    if (random.chance(0.07)) headers.push([name, random.pick(values)]);
  if (wish.body && !willing && random.chance(0.05)) wish.body = scramble(wish.body, random);
  const { bytes, lies } = willing ? frame(wish, calm) : frame(wish, random);
  const leaves = wish.waits ? 5 + random.whole(120) : random.chance(0.03) ? random.whole(15) : lies ? 60 : undefined;
  return {
    door,
    method: wish.method,
    path,
    bytes,
    lies,
    plain: wish.plain,
    context,
    ...(leaves !== undefined && { leaveAfterMs: leaves }),
  };
}

/** Always returns 0, so that `frame` chooses the normal format. */
const calm = new (class extends Random {
  override next(): number {
    return 0;
  }
})(0);
