import fc from 'fast-check';
import { RialtoError } from '../../../kernel/errors.js';
import { parseJson } from '../../jsonrpc.js';
import { decodeBridgeReply, encodeBridgeCall, toolOutput, type BridgeCall } from './bridge-call.js';

const call: BridgeCall = {
  version: '0.3',
  requestId: 1_700_000_000_000,
  messageId: 'm1',
  skillId: 'deploy',
  args: { projectId: 'p' },
  sessionId: 'a2a-1-deploy-x',
};

describe('encodeBridgeCall', () => {
  it('RE-15 RE-17 RE-18 RE-19 RE-20 writes the v0.3 form', () => {
    const { body, headers } = encodeBridgeCall(call);
    expect(headers).toEqual({ 'Content-Type': 'application/json', Accept: 'application/json' });
    expect(JSON.parse(body)).toEqual({
      jsonrpc: '2.0',
      id: 1_700_000_000_000,
      method: 'message/send',
      params: {
        message: {
          kind: 'message',
          role: 'user',
          messageId: 'm1',
          parts: [{ kind: 'data', data: { projectId: 'p' } }],
          skill: { skillId: 'deploy' },
        },
        correlationId: 'a2a-1-deploy-x',
        taskId: 'a2a-1-deploy-x',
      },
    });
  });

  it('RE-19 E9 writes the v1.0 form without extra keys', () => {
    const { body, headers } = encodeBridgeCall({ ...call, version: '1.0' });
    expect(headers).toMatchObject({ 'A2A-Version': '1.0' });
    expect(JSON.parse(body)).toEqual({
      jsonrpc: '2.0',
      id: 1_700_000_000_000,
      method: 'SendMessage',
      params: {
        message: {
          messageId: 'm1',
          role: 'ROLE_USER',
          parts: [{ data: { projectId: 'p' } }],
          metadata: { skillId: 'deploy', correlationId: 'a2a-1-deploy-x' },
        },
      },
    });
  });

  it('writes the requested options in the words of the version', () => {
    const params = (more: Partial<BridgeCall>) =>
      (JSON.parse(encodeBridgeCall({ ...call, ...more }).body) as { params: Record<string, unknown> }).params;
    expect(params({ historyLength: 0, blocking: true }).configuration).toEqual({ historyLength: 0, blocking: true });
    expect(params({ version: '1.0', historyLength: 2, blocking: true, tenant: 't' })).toMatchObject({
      tenant: 't',
      configuration: { historyLength: 2, returnImmediately: false },
    });
  });
});

const decode = (body: unknown, status = 200) =>
  decodeBridgeReply(parseJson(typeof body === 'string' ? body : JSON.stringify(body)), { status, requestId: 1 });
const result = (value: unknown) => ({ jsonrpc: '2.0', id: 1, result: value });
const task = (state: unknown, more: object = {}) => ({
  kind: 'task',
  id: 't1',
  contextId: 'c1',
  status: { state },
  ...more,
});
const artifact = (...parts: object[]) => ({ artifactId: 'a1', name: 'n', parts });
const done = (...artifacts: object[]) => result(task('completed', { artifacts }));

function errorOf(run: () => unknown): RialtoError {
  try {
    run();
  } catch (error) {
    if (error instanceof RialtoError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

const accepted: [string, unknown, string][] = [
  ['v0.3 task', task('completed'), 'TASK_STATE_COMPLETED'],
  ['v0.3 task without kind', { id: 't', status: { state: 'working' } }, 'TASK_STATE_WORKING'],
  ['v1.0 task', { task: { id: 't', status: { state: 'TASK_STATE_COMPLETED' } } }, 'TASK_STATE_COMPLETED'],
  ['v1.0 words in a bare task', task('TASK_STATE_WORKING'), 'TASK_STATE_WORKING'],
  ['v0.3 words in a wrapped task', { task: task('submitted') }, 'TASK_STATE_SUBMITTED'],
  ['an unknown state', task('paused'), 'TASK_STATE_UNSPECIFIED'],
  ['an empty state', task(''), 'TASK_STATE_UNSPECIFIED'],
  ['null artifacts', task('completed', { artifacts: null }), 'TASK_STATE_COMPLETED'],
  ['null members beside', { task: task('completed'), message: null }, 'TASK_STATE_COMPLETED'],
  [
    'a status message in plain text',
    task('working', { status: { state: 'working', message: 'soon' } }),
    'TASK_STATE_WORKING',
  ],
  ['an unknown part', task('completed', { artifacts: [artifact({ kind: 'odd' })] }), 'TASK_STATE_COMPLETED'],
  [
    'a part with type',
    task('completed', { artifacts: [artifact({ type: 'text', text: 'a' })] }),
    'TASK_STATE_COMPLETED',
  ],
  ['empty parts', task('completed', { artifacts: [artifact()] }), 'TASK_STATE_COMPLETED'],
  ['a v0.3 message', { kind: 'message', messageId: 'm', role: 'agent', parts: [] }, 'message'],
  ['(C03) a message without parts', { message: { messageId: 'm', role: 'ROLE_AGENT' } }, 'message'],
  ['(C03) an artifact without parts', task('completed', { artifacts: [{ artifactId: 'a' }] }), 'TASK_STATE_COMPLETED'],
  [
    '(C03) parts that are null',
    task('completed', { artifacts: [{ artifactId: 'a', parts: null }] }),
    'TASK_STATE_COMPLETED',
  ],
  [
    '(C03) a status message without parts',
    task('completed', { status: { state: 'completed', message: { messageId: 'm' } } }),
    'TASK_STATE_COMPLETED',
  ],
  ['a bare message', { messageId: 'm', parts: [{ text: 'a' }] }, 'message'],
  ['a v1.0 message', { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'a' }] } }, 'message'],
  ['a proto message', { message: { messageId: 'm', content: [{ text: 'a' }] } }, 'message'],
];

const notA2a: [string, unknown][] = [
  ['nothing', ''],
  ['HTML', '<!doctype html><html></html>'],
  ['half JSON', '{"jsonrpc":"2.0","id":1,"result":'],
  ['depth', '['.repeat(100_000)],
  ['a number out of range', '{"jsonrpc":"2.0","id":1,"result":{"id":"t","status":{"state":"working"},"n":1e999}}'],
  ['two documents', `${JSON.stringify(done())}${JSON.stringify(done())}`],
  ['an event stream', 'data: {}\n\n'],
  ['RE-29 {}', {}],
  ['[]', []],
  ['null', null],
  ['a number', 7],
  ['a string', '"ok"'],
  ['true', 'true'],
  ['a batch', [done()]],
  ['no version', { id: 1, result: task('completed') }],
  ['version 1.0', { ...done(), jsonrpc: '1.0' }],
  ['version as number', { ...done(), jsonrpc: 2 }],
  ['a bare task', task('completed')],
  ['neither result nor error', { jsonrpc: '2.0', id: 1 }],
  ['both', { ...done(), error: { code: 1, message: 'm' } }],
  ['another id', { ...done(), id: 2 }],
  ['the id as text', { ...done(), id: '1' }],
  ['no id', { ...done(), id: undefined }],
  ['a null id', { ...done(), id: null }],
  ['an object id', { ...done(), id: {} }],
  ['an error for another id', { jsonrpc: '2.0', id: 5, error: { code: 1, message: 'm' } }],
  ['error text', { jsonrpc: '2.0', id: 1, error: 'boom' }],
  ['error true', { jsonrpc: '2.0', id: 1, error: true }],
  ['an error without code', { jsonrpc: '2.0', id: 1, error: { message: 'm' } }],
  ['an error with a text code', { jsonrpc: '2.0', id: 1, error: { code: '-32602', message: 'm' } }],
  ['an error without message', { jsonrpc: '2.0', id: 1, error: { code: 1 } }],
  ['result null', result(null)],
  ['result text', result('ok')],
  ['result list', result([])],
  ['result {}', result({})],
  ['task and message', result({ task: task('completed'), message: { parts: [] } })],
  ['task text', result({ task: 'x' })],
  ['task null', result({ task: null })],
  ['message text', result({ message: 'x' })],
  ['message without any member of a message', result({ message: { odd: 1 } })],
  ['a status update', result({ kind: 'status-update', taskId: 't', status: { state: 'working' } })],
  ['an unknown kind', result({ kind: 'odd', id: 't', status: { state: 'working' } })],
  ['kind as number', result({ kind: 5, id: 't', status: { state: 'working' } })],
  ['no task id', result({ kind: 'task', status: { state: 'working' } })],
  ['an empty task id', result(task('working', { id: '' }))],
  ['a task id as number', result(task('working', { id: 5 }))],
  ['no status', result({ kind: 'task', id: 't' })],
  ['status text', result({ kind: 'task', id: 't', status: 'working' })],
  ['no state', result(task(undefined))],
  ['state as number', result(task(3))],
  ['state as list', result(task(['working']))],
  ['artifacts as object', result(task('completed', { artifacts: {} }))],
  ['an artifact as text', result(task('completed', { artifacts: ['x'] }))],
  ['parts as object', result(task('completed', { artifacts: [{ parts: {} }] }))],
  ['a part as text', result(task('completed', { artifacts: [{ parts: ['x'] }] }))],
  ['a null part', result(task('completed', { artifacts: [{ parts: [null] }] }))],
  ['a text part without text', result(task('completed', { artifacts: [artifact({ kind: 'text' })] }))],
  ['a text part with a number', result(task('completed', { artifacts: [artifact({ kind: 'text', text: 5 })] }))],
  ['a data part without data', result(task('completed', { artifacts: [artifact({ kind: 'data' })] }))],
  ['a status message as number', result(task('working', { status: { state: 'working', message: 5 } }))],
  ['__proto__ as the envelope', '{"__proto__":{"jsonrpc":"2.0","id":1,"result":{}}}'],
];

describe('decodeBridgeReply', () => {
  it.each(accepted)('F29 accepts %s', (_name, value, state) => {
    const reply = decode(result(value));
    expect(reply.kind === 'task' ? reply.state : reply.kind).toBe(state);
  });

  it.each(notA2a)('RE-29 F29 remote_invalid_response for %s', (_name, body) => {
    expect(errorOf(() => decode(body)).code).toBe('remote_invalid_response');
  });

  it.each([
    'failed',
    'rejected',
    'canceled',
    'cancelled',
    'TASK_STATE_FAILED',
    'TASK_STATE_CANCELLED',
    'TASK_STATE_REJECTED',
  ])('RE-24 remote_task_failed for %s, with the text of the remote agent', (state) => {
    const message = {
      role: 'agent',
      parts: [{ kind: 'text', text: 'no quota' }, { kind: 'data', data: 1 }, { text: 'try later' }],
    };
    const error = errorOf(() => decode(result(task(state, { status: { state, message } }))));
    expect(error).toMatchObject({ code: 'remote_task_failed', message: 'no quota\ntry later', data: { taskId: 't1' } });
    expect(['failed', 'rejected', 'canceled']).toContain(error.data?.state);
  });

  it('passes over a byte order mark (C05)', () => {
    expect(decode(`\ufeff${JSON.stringify(done())}`)).toEqual(decode(done()));
  });

  it('RE-24 has a message even when the remote agent sends none, and bounds its length', () => {
    expect(errorOf(() => decode(result(task('failed')))).message).toBe('the remote task ended as failed');
    const status = { state: 'failed', message: { parts: [{ text: `${'x'.repeat(9_000)}\u0000` }] } };
    expect(errorOf(() => decode(result(task('failed', { status })))).message.length).toBeLessThan(4_100);
  });

  it('RE-89 passes a JSON-RPC error on', () => {
    const error = { code: -32602, message: 'projectId is missing', data: [{ field: 'projectId' }] };
    for (const id of [1, null, undefined]) {
      expect(errorOf(() => decode({ jsonrpc: '2.0', id, error }))).toMatchObject({
        code: 'remote_error',
        message: 'projectId is missing',
        data: { remoteCode: -32602, remoteMessage: 'projectId is missing', remoteData: [{ field: 'projectId' }] },
      });
    }
    expect(errorOf(() => decode({ jsonrpc: '2.0', id: 1, result: null, error })).code).toBe('remote_error');
    const large = errorOf(() => decode({ jsonrpc: '2.0', id: 1, error: { ...error, data: 'y'.repeat(100_000) } }));
    expect((large.data?.remoteData as string).length).toBeLessThan(4_100);
  });

  it('RE-28 remote_transport for a status outside 2xx, with any body', () => {
    for (const [body, status] of [
      ['<html>', 500],
      ['', 404],
      [JSON.stringify(done()), 503],
      ['{}', 302],
    ] as const) {
      expect(errorOf(() => decode(body, status))).toMatchObject({ code: 'remote_transport', data: { status } });
    }
    const body = { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'bad' } };
    expect(errorOf(() => decode(body, 400)).data).toEqual({ status: 400, remoteCode: -32700, remoteMessage: 'bad' });
    expect(decode(done(), 201).kind).toBe('task');
  });

  it('F29 never crashes on any input', () => {
    const safely = (text: string) => {
      try {
        return typeof toolOutput(decode(text)) !== 'undefined';
      } catch (error) {
        return error instanceof RialtoError && error.code.startsWith('remote_');
      }
    };
    const any = fc.jsonValue({ maxDepth: 4 });
    const part = fc.oneof(
      any,
      fc.record({ kind: fc.constantFrom('text', 'data', 'file', 5), text: any, data: any }, { requiredKeys: [] }),
    );
    const parts = fc.record({ parts: fc.oneof(any, fc.array(part)) });
    const state = fc.oneof(any, fc.constantFrom('completed', 'failed', 'input-required', 'TASK_STATE_WORKING'));
    const body = fc.record(
      {
        kind: fc.oneof(any, fc.constant('task')),
        id: fc.oneof(any, fc.constant('t')),
        status: fc.oneof(any, fc.record({ state, message: fc.oneof(any, parts) }, { requiredKeys: ['state'] })),
        artifacts: fc.oneof(any, fc.array(fc.oneof(any, parts))),
        task: any,
        message: fc.oneof(any, parts),
      },
      { requiredKeys: [] },
    );
    const envelope = fc.record(
      { jsonrpc: fc.constant('2.0'), id: fc.constant(1), result: fc.oneof(any, body), error: any },
      { requiredKeys: ['jsonrpc', 'id'] },
    );
    fc.assert(fc.property(fc.string(), safely));
    fc.assert(fc.property(any, (value) => safely(JSON.stringify(value))));
    fc.assert(
      fc.property(envelope, (value) => safely(JSON.stringify(value))),
      { numRuns: 1_000 },
    );
  });
});

describe('toolOutput', () => {
  const outputOf = (value: unknown) => toolOutput(decode(value));

  it('RE-21 returns the data of a single data part without loss', () => {
    const data = {
      text: 'ünï😀',
      none: null,
      big: 2 ** 64,
      deep: [{ a: [1.5e-7, -0.1, 1e300] }],
      '': {},
    };
    expect(outputOf(done(artifact({ kind: 'data', data })))).toEqual(data);
    expect(outputOf(done(artifact({ type: 'data', data })))).toEqual(data);
    expect(
      outputOf(
        result({ task: { id: 't', status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [artifact({ data })] } }),
      ),
    ).toEqual(data);
    for (const odd of [null, 0, false, '', []]) expect(outputOf(done(artifact({ data: odd })))).toEqual(odd);
    expect(outputOf(done(artifact({ text: null, data: 5 })))).toBe(5);
  });

  it('RE-22 returns the string of a single text part', () => {
    expect(outputOf(done(artifact({ kind: 'text', text: 'hello' })))).toBe('hello');
    expect(outputOf(done(artifact({ text: '' })))).toBe('');
  });

  it('RE-23 returns the whole artifact as it was sent in all other cases', () => {
    const many = {
      ...artifact({ kind: 'text', text: 'a' }, { kind: 'data', data: 1 }),
      metadata: { x: 1 },
      'x-own': true,
    };
    expect(outputOf(done(many))).toEqual(many);
    const file = artifact({ kind: 'file', file: { uri: 'https://a.example/f' } });
    expect(outputOf(done(file))).toEqual(file);
    expect(outputOf(done(many, file))).toEqual({ artifacts: [many, file] });
  });

  it('returns the status message, or the task to poll, when there is no artifact', () => {
    const status = (message: object) => result(task('completed', { status: { state: 'completed', message } }));
    expect(outputOf(status({ parts: [{ kind: 'text', text: 'done' }] }))).toBe('done');
    expect(outputOf(status({ parts: [{ text: 'a' }, { data: 1 }], role: 'agent' }))).toEqual({
      parts: [{ text: 'a' }, { data: 1 }],
      role: 'agent',
    });
    expect(outputOf(result(task('completed')))).toEqual({
      taskId: 't1',
      contextId: 'c1',
      state: 'completed',
      message: '',
    });
  });

  it.each([
    ['input-required', 'input-required'],
    ['TASK_STATE_AUTH_REQUIRED', 'auth-required'],
    ['submitted', 'submitted'],
    ['working', 'working'],
    ['paused', 'unknown'],
  ])('a task that is %s returns its id for polling', (state, word) => {
    const message = { parts: [{ text: 'which one?' }] };
    expect(
      outputOf(result(task(state, { status: { state, message }, artifacts: [artifact({ text: 'half' })] }))),
    ).toEqual({
      taskId: 't1',
      contextId: 'c1',
      state: word,
      message: 'which one?',
    });
  });

  it('returns the only part of a message, or the message itself', () => {
    expect(outputOf(result({ kind: 'message', parts: [{ kind: 'text', text: 'hi' }] }))).toBe('hi');
    expect(outputOf(result({ message: { messageId: 'm', parts: [{ data: { a: 1 } }] } }))).toEqual({ a: 1 });
    const message = { messageId: 'm', parts: [{ text: 'a' }, { text: 'b' }] };
    expect(outputOf(result({ message }))).toEqual(message);
  });
});
