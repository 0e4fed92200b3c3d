import fc from 'fast-check';
import type { Json, JsonObject } from '../../kernel/json.js';
import { dialects } from './dialects.js';
import type { Message, Part, StreamResponse } from './model.js';
import type { SendParams } from './request/operations.js';
import { decodeRest, encodeRestEvent, matchRest } from './rest/rest.js';

const methods = [
  'SendMessage',
  'GetTask',
  'ListTasks',
  'CancelTask',
  'CreateTaskPushNotificationConfig',
  'ListTaskPushNotificationConfigs',
  'message/send',
  'tasks/get',
  'tasks/pushNotificationConfig/set',
  'tasks/pushNotification/delete',
];
const names = [
  'message',
  'messageId',
  'role',
  'parts',
  'content',
  'kind',
  'type',
  'text',
  'raw',
  'url',
  'data',
  'file',
  'bytes',
  'metadata',
  'configuration',
  'authentication',
  'schemes',
  'pushNotificationConfig',
  'taskId',
  'id',
  'skill',
  'choice_id',
  '__proto__',
  'constructor',
];
const json = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom<Json>(null, true, -1, 1.5, '', 'user', 'ROLE_USER', 'text', 'aGk=', '\u0000', '\ud800'),
    fc.string({ unit: 'binary' }),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...names), tie('value'), { maxKeys: 6 }) as fc.Arbitrary<Json>,
  ),
})).value;

/** True when any key of the value, at any depth, is undefined. */
function holdsUndefined(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return value === undefined;
  return Object.values(value).some(holdsUndefined);
}

const decoded = expect.objectContaining({ ok: expect.any(Boolean) as boolean });

describe('decoding', () => {
  it('accepts any JSON and never throws', () => {
    fc.assert(
      fc.property(fc.constantFrom(...methods), json, fc.boolean(), (method, params, hasIds) => {
        for (const dialect of Object.values(dialects)) {
          const result = dialect.decode(method, params, hasIds ? { newId: () => 'made' } : {});
          expect(result).toEqual(decoded);
          expect(holdsUndefined(result)).toBe(false);
          if (!result.ok && result.code === 'invalid_params') expect(result.violations?.length).toBeGreaterThan(0);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('accepts any REST request', () => {
    const segment = fc.oneof(fc.constantFrom('tasks', 'v1', 'message:send', 'x:cancel', '%', '%41', ''), fc.string());
    fc.assert(
      fc.property(
        fc.constantFrom('GET', 'POST', 'DELETE'),
        fc.array(segment, { maxLength: 5 }),
        fc.dictionary(fc.constantFrom('pageSize', 'status', 'historyLength', 'tenant'), fc.string()),
        fc.option(json, { nil: undefined }),
        (method, segments, query, body) => {
          const found = matchRest(method, `/${segments.join('/')}`);
          if (!found || 'allow' in found) return;
          expect(decodeRest(found, new URLSearchParams(query), body)).toEqual(decoded);
        },
      ),
      { numRuns: 500 },
    );
  });
});

const storable = fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\u0000') && text.isWellFormed());
const free = fc
  .dictionary(storable, fc.oneof(storable, fc.integer(), fc.constant(null), fc.array(storable)))
  .map((object) => JSON.parse(JSON.stringify(object)) as JsonObject);
const named = fc.record(
  { filename: fc.constantFrom('a.txt', 'ü 😀.bin'), mediaType: fc.constantFrom('text/plain', 'application/json') },
  { requiredKeys: [] },
);
const bytes = fc.uint8Array().map((array) => Buffer.from(array).toString('base64'));
const part: fc.Arbitrary<Part> = fc.oneof(
  storable.map((text) => ({ text })),
  fc.tuple(bytes, named).map(([raw, names]) => ({ raw, ...names })),
  fc.tuple(fc.webUrl(), named).map(([url, names]) => ({ url, ...names })),
  fc.oneof(free, fc.constant(null), fc.integer(), storable, fc.array(fc.integer())).map((data) => ({ data })),
  fc.record({ text: storable, metadata: free }),
);
const message: fc.Arbitrary<Message> = fc
  .record(
    {
      messageId: fc.uuid(),
      role: fc.constant('ROLE_USER' as const),
      parts: fc.array(part, { minLength: 1, maxLength: 4 }),
      contextId: fc.uuid(),
      taskId: fc.uuid(),
      metadata: free,
      extensions: fc.constant(['urn:x']),
      referenceTaskIds: fc.constant(['t0']),
    },
    { requiredKeys: ['messageId', 'role', 'parts'] },
  )
  .map((given) => JSON.parse(JSON.stringify(given)) as Message);

function sentMessage(result: ReturnType<(typeof dialects)['1.0']['decode']>): Message {
  if (!result.ok) throw new Error(result.message);
  return (result.operation.params as SendParams).message;
}

describe('round trips', () => {
  it('v1.0 reads its own output and passes it on unchanged', () =>
    fc.assert(
      fc.property(message, (given) => {
        const { message: wire } = dialects['1.0'].encodeEvent({ message: given }) as { message: Json };
        const read = sentMessage(dialects['1.0'].decode('SendMessage', { message: wire }));
        expect(read).toStrictEqual(given);
        expect(dialects['1.0'].encodeEvent({ message: read })).toStrictEqual({ message: wire });
      }),
    ));

  it('v0.3 reads its own output', () =>
    fc.assert(
      fc.property(message, (given) => {
        const wire = dialects['0.3'].encodeEvent({ message: given });
        expect(holdsUndefined(wire)).toBe(false);
        expect(sentMessage(dialects['0.3'].decode('message/send', { message: wire }))).toStrictEqual(given);
      }),
    ));

  it('v0.3 REST reads its own output', () =>
    fc.assert(
      fc.property(message, (given) => {
        const { referenceTaskIds: _notInTheProto, ...expected } = given;
        const body = encodeRestEvent('0.3', { message: given });
        expect(holdsUndefined(body)).toBe(false);
        const match = matchRest('POST', '/v1/message:send');
        if (!match || 'allow' in match) throw new Error('no match');
        expect(sentMessage(decodeRest(match, new URLSearchParams(), body))).toStrictEqual(expected);
      }),
    ));

  it('v0.3 returns what was sent: file bytes, data, nested unicode', () => {
    const parts = [
      {
        kind: 'file',
        file: { bytes: Buffer.from([0, 255, 1, 254]).toString('base64'), name: 'ü.bin', mimeType: 'a/b' },
      },
      { kind: 'data', data: { a: { b: [null, 'ünï 😀', 9007199254740991, 1e300] }, value: null } },
      { kind: 'text', text: 'line\n\ttab 😀', metadata: { k: null } },
    ];
    const sent = { kind: 'message', messageId: 'm1', role: 'user', parts };
    const read = sentMessage(dialects['0.3'].decode('message/send', { message: sent }));
    expect(dialects['0.3'].encodeEvent({ message: read })).toStrictEqual(sent);
  });
});

describe('encodings', () => {
  it('hold no undefined member, even when members are absent', () => {
    const status = { state: 'TASK_STATE_WORKING', message: undefined, timestamp: undefined } as const;
    const task = {
      id: 't',
      contextId: undefined,
      status,
      artifacts: undefined,
      history: undefined,
      metadata: undefined,
    };
    const artifact = { artifactId: 'a', name: undefined, parts: [{ text: 'x', metadata: undefined }] };
    const events: StreamResponse[] = [
      { task },
      { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ data: null, url: undefined }], taskId: undefined } },
      { statusUpdate: { taskId: 't', contextId: 'c', status, metadata: undefined } },
      { artifactUpdate: { taskId: 't', contextId: 'c', artifact, append: undefined } },
    ];
    for (const event of events) {
      expect(holdsUndefined(dialects['1.0'].encodeEvent(event))).toBe(false);
      expect(holdsUndefined(dialects['0.3'].encodeEvent(event))).toBe(false);
      expect(holdsUndefined(encodeRestEvent('0.3', event))).toBe(false);
    }
  });
});
