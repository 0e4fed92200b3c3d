import * as sdk from '@a2a-js/sdk';
import { LegacyA2AService } from '@a2a-js/sdk/compat/v0_3/server/grpc';
import { decodeErrorInfo, decodeStatus } from '@a2a-js/sdk/errors/grpc';
import { A2AService } from '@a2a-js/sdk/server/grpc';
import { RialtoError } from '../../kernel/errors.js';
import { writeStruct } from '../protobuf/values.js';
import { WireWriter } from '../protobuf/wire.js';
import { dialects } from './dialects.js';
import { grpcStatus } from './error/errors.js';
import { grpcMethods, statusBytes, type GrpcMethod } from './grpc.js';
import type { A2aVersion, AgentCard, Message, Part, Task } from './model.js';

const method = (version: A2aVersion, rpc: string): GrpcMethod =>
  grpcMethods.find((one) => one.version === version && one.rpc === rpc)!;

const parts: Part[] = [
  { text: '' },
  { text: 'grüße 🎈', metadata: { lang: 'de', deep: { list: [1, -2.5, true, null, 'x'] } } },
  { raw: Buffer.from([0, 1, 254, 255]).toString('base64'), filename: 'a.bin', mediaType: 'application/octet-stream' },
  { url: 'https://example.com/a.txt', filename: 'a.txt', mediaType: 'text/plain' },
  { data: { key: 'value', count: 42, none: null } },
];
const values = [null, [1, 'two', { three: 3 }], 'text', 1.5, false, 0, '', {}];
const message: Message = {
  messageId: 'm-1',
  contextId: 'c-1',
  taskId: 't-1',
  role: 'ROLE_USER',
  parts: [...parts, ...values.map((data) => ({ data }))],
  metadata: { a: 1 },
  extensions: ['urn:x'],
  referenceTaskIds: ['t-0'],
};
const task: Task = {
  id: 't-1',
  contextId: 'c-1',
  status: { state: 'TASK_STATE_CANCELED', timestamp: '2026-01-31T12:00:00.123Z', message: { ...message, parts } },
  artifacts: [{ artifactId: 'a', name: 'n', parts, metadata: { b: [] } }],
  history: [{ ...message, parts }],
};
const card: AgentCard = {
  name: 'echo',
  description: 'Says it.',
  supportedInterfaces: [{ url: 'h:1', protocolBinding: 'GRPC', tenant: 'echo', protocolVersion: '1.0' }],
  version: '1.0.0',
  capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true },
  securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: 'bearer' } } },
  securityRequirements: [{ schemes: { bearer: { list: ['read'] } } }],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 's', name: 'S', description: 'd', tags: ['t'] }],
};

describe('a request encoded by the official SDK', () => {
  const configuration = { acceptedOutputModes: ['text/plain'], historyLength: 0, returnImmediately: true };

  it('has in gRPC of v1.0 the same meaning as its JSON', () => {
    const json = { tenant: 'echo', message, configuration, metadata: { m: 1 } };
    const request = sdk.SendMessageRequest.fromJSON(json);
    // The SDK loses a null between JSON and its own message (a2a.md 2.2), but not between that message and the wire.
    request.message!.parts.forEach((part) => (part.content ??= { $case: 'data', value: null }));
    const bytes = A2AService.sendMessage.requestSerialize(request);
    const send = method('1.0', 'SendMessage');
    expect(send.decode(bytes)).toEqual(dialects['1.0'].decode('SendMessage', json));
    expect(send.tenantOf(bytes)).toBe('echo');
  });

  it('distinguishes set members from absent ones', () => {
    const decode = (json: object) =>
      method('1.0', 'ListTasks').decode(A2AService.listTasks.requestSerialize(sdk.ListTasksRequest.fromJSON(json)));
    const after = '2026-01-31T12:00:00.123Z';
    for (const json of [
      {},
      { historyLength: 0, includeArtifacts: false, status: 'TASK_STATE_AUTH_REQUIRED', statusTimestampAfter: after },
      { pageSize: 0 },
      { historyLength: -1, pageSize: -7 },
    ])
      expect(decode(json)).toEqual(dialects['1.0'].decode('ListTasks', json));
  });

  it('is refused in gRPC when its JSON is refused', () => {
    const decode = (request: object) =>
      method('1.0', 'SendMessage').decode(
        A2AService.sendMessage.requestSerialize(sdk.SendMessageRequest.fromJSON(request)),
      );
    const fields = (request: object) => {
      const decoded = decode(request);
      return decoded.ok ? [] : decoded.violations?.map(({ field }) => field);
    };
    expect(fields({ message: { messageId: 'm', role: 'ROLE_USER', parts: [] } })).toEqual(['message.parts']);
    expect(fields({ message: { messageId: 'm', parts: [{ text: 'x' }] } })).toEqual(['message.role']);
    expect(fields({ message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'x' }] } })).toEqual([
      'message.role',
    ]);
    expect(fields({ message: { messageId: 'm', role: 77, parts: [{ text: 'x' }] } })).toEqual(['message.role']);
    expect(fields({})).toEqual(['message']);
  });

  it('has in gRPC of v0.3 the meaning of its resource names and proto members', () => {
    const bytes = LegacyA2AService.sendMessage.requestSerialize({
      request: {
        messageId: 'm',
        contextId: '',
        taskId: '',
        role: 1,
        content: [
          { part: { $case: 'text', value: 'hi' } },
          { part: { $case: 'data', value: { data: { a: 1 } } } },
          {
            part: {
              $case: 'file',
              value: { file: { $case: 'fileWithBytes', value: Buffer.from('x') }, mimeType: 'a/b' },
            },
          },
        ],
        metadata: undefined,
        extensions: [],
      },
      configuration: { acceptedOutputModes: [], pushNotification: undefined, historyLength: 0, blocking: false },
      metadata: { k: 'v' },
    });
    expect(method('0.3', 'SendMessage').decode(bytes)).toMatchObject({
      ok: true,
      version: '0.3',
      operation: {
        name: 'SendMessage',
        params: {
          message: { parts: [{ text: 'hi' }, { data: { a: 1 } }, { raw: 'eA==', mediaType: 'a/b' }] },
          returnImmediately: true,
          metadata: { k: 'v' },
        },
      },
    });
    const get = method('0.3', 'GetTask');
    const named = (name: string) => get.decode(LegacyA2AService.getTask.requestSerialize({ name, historyLength: 3 }));
    expect(named('tasks/t-1')).toMatchObject({ operation: { params: { id: 't-1', historyLength: 3 } } });
    expect(named('t-1')).toMatchObject({ ok: false, violations: [{ field: 'name' }] });
    const config = method('0.3', 'DeleteTaskPushNotificationConfig').decode(
      LegacyA2AService.deleteTaskPushNotificationConfig.requestSerialize({
        name: 'tasks/t-1/pushNotificationConfigs/c-1',
      }),
    );
    expect(config).toMatchObject({ operation: { params: { taskId: 't-1', id: 'c-1' } } });
  });
});

describe('an answer to the official SDK', () => {
  it('is in gRPC of v1.0 the same as in JSON', () => {
    const getTask = { name: 'GetTask', params: { id: 't-1' } } as const;
    const bytes = method('1.0', 'GetTask').encode(getTask, task);
    expect(sdk.Task.toJSON(A2AService.getTask.responseDeserialize(bytes))).toEqual(task);
    const event = { artifactUpdate: { taskId: 't', contextId: 'c', artifact: task.artifacts![0]!, append: true } };
    const read = A2AService.subscribeToTask.responseDeserialize(method('1.0', 'SubscribeToTask').encodeEvent(event));
    expect(sdk.StreamResponse.toJSON(read)).toEqual(event);
    const page = { tasks: [task], nextPageToken: 'n', pageSize: 50, totalSize: 1 };
    const list = method('1.0', 'ListTasks').encode(
      { name: 'ListTasks', params: { pageSize: 50, includeArtifacts: true } },
      page,
    );
    expect(sdk.ListTasksResponse.toJSON(A2AService.listTasks.responseDeserialize(list))).toEqual(page);
    const extended = method('1.0', 'GetExtendedAgentCard').encode(
      { name: 'GetExtendedAgentCard', params: {} },
      JSON.parse(JSON.stringify(card)),
    );
    expect(sdk.AgentCard.toJSON(A2AService.getExtendedAgentCard.responseDeserialize(extended))).toEqual(card);
  });

  it('keeps null in a data part', () => {
    const event = { message: { ...message, parts: [{ data: null }] } };
    const read = A2AService.subscribeToTask.responseDeserialize(method('1.0', 'SubscribeToTask').encodeEvent(event));
    expect((read.payload!.value as sdk.Message).parts[0]!.content).toEqual({ $case: 'data', value: null });
  });

  it('uses the words of the proto in gRPC of v0.3', () => {
    const getTask = { name: 'GetTask', params: { id: 't-1' } } as const;
    const read = LegacyA2AService.getTask.responseDeserialize(method('0.3', 'GetTask').encode(getTask, task));
    expect(read).toMatchObject({
      id: 't-1',
      status: { state: 5, timestamp: '2026-01-31T12:00:00.123Z', update: { messageId: 'm-1', role: 1 } },
      artifacts: [{ artifactId: 'a', name: 'n', metadata: { b: [] } }],
    });
    expect(read.history[0]!.content[2]!.part).toEqual({
      $case: 'file',
      value: {
        file: { $case: 'fileWithBytes', value: Buffer.from([0, 1, 254, 255]) },
        mimeType: 'application/octet-stream',
      },
    });
    const older = {
      ...{
        protocolVersion: '0.3',
        name: 'echo',
        description: 'd',
        url: 'h:1',
        preferredTransport: 'GRPC',
        version: '1',
      },
      capabilities: { streaming: true },
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' }, key: { type: 'apiKey', in: 'header', name: 'x' } },
      security: [{ bearer: ['read'] }],
      ...{ defaultInputModes: ['a/b'], defaultOutputModes: [], supportsAuthenticatedExtendedCard: true },
      skills: [{ id: 's', name: 'S', description: 'd', tags: [], security: [{ key: [] }] }],
    };
    const extended = method('0.3', 'GetAgentCard').encode({ name: 'GetExtendedAgentCard', params: {} }, older);
    expect(LegacyA2AService.getAgentCard.responseDeserialize(extended)).toMatchObject({
      ...{ protocolVersion: '0.3', preferredTransport: 'GRPC', supportsAuthenticatedExtendedCard: true },
      securitySchemes: {
        bearer: { scheme: { $case: 'httpAuthSecurityScheme', value: { scheme: 'bearer' } } },
        key: { scheme: { $case: 'apiKeySecurityScheme', value: { location: 'header', name: 'x' } } },
      },
      security: [{ schemes: { bearer: { list: ['read'] } } }],
      skills: [{ id: 's', security: [{ schemes: { key: { list: [] } } }] }],
    });
  });
});

describe('bytes that are not a request', () => {
  const send = method('1.0', 'SendMessage');
  const good = A2AService.sendMessage.requestSerialize(
    sdk.SendMessageRequest.fromJSON({ message, metadata: { a: 1 } }),
  );
  const nested = (depth: number): Buffer => {
    let bytes: Buffer = Buffer.alloc(0);
    for (let level = 0; level < depth; level++) {
      const [list, value] = [new WireWriter(), new WireWriter()];
      list.block(1, bytes);
      value.block(6, list.finish());
      bytes = value.finish();
    }
    return bytes;
  };
  const withData = (...values: Buffer[]): Buffer => {
    const request = new WireWriter();
    request.inBlock(2, () => {
      for (const value of values) request.inBlock(5, () => request.block(4, value));
      request.varint(4, 1);
      request.text(1, 'm');
    });
    return request.finish();
  };
  const number = (value: number): Buffer => {
    const writer = new WireWriter();
    writer.double(2, value);
    return writer.finish();
  };

  it('are refused with a reason and never throw', () => {
    const refused = { ok: false, code: 'invalid_params', violations: [{ field: 'message' }] };
    for (let end = 0; end < good.length; end++) expect(typeof send.decode(good.subarray(0, end)).ok).toBe('boolean');
    expect(send.decode(good.subarray(0, good.length - 1))).toMatchObject(refused);
    expect(send.decode(Buffer.from([0x0a, 0x02, 0xff, 0xfe]))).toMatchObject({
      violations: [{ description: expect.stringContaining('UTF-8') }],
    });
    expect(send.decode(Buffer.alloc(64, 0xff))).toMatchObject(refused);
    expect(send.decode(Buffer.from([0x0b]))).toMatchObject(refused);
    expect(send.decode(withData(number(NaN)))).toMatchObject(refused);
    expect(send.decode(withData(number(Infinity)))).toMatchObject(refused);
    let seed = 7;
    for (let round = 0; round < 300; round++) {
      const bytes = Buffer.from(good);
      for (let flips = 0; flips < 4; flips++) {
        seed = (seed * 48_271) % 2_147_483_647;
        bytes[seed % bytes.length] = seed & 0xff;
      }
      for (const one of grpcMethods) expect(typeof one.decode(bytes).ok).toBe('boolean');
    }
  });

  const repeated = (field: number[]): Buffer => Buffer.alloc(220_000, Buffer.from(field));
  const within = (number: number, bytes: Buffer): Buffer => {
    const writer = new WireWriter();
    writer.block(number, bytes);
    return writer.finish();
  };

  it('cannot nest values without limit', () => {
    expect(send.decode(withData(nested(60)))).toMatchObject({ ok: true });
    expect(send.decode(withData(nested(5_000)))).toMatchObject({
      violations: [{ description: expect.stringContaining('nested deeper') }],
    });
  });

  it('cannot hold an object with too many members', () => {
    const wide = (members: number): Buffer => {
      const [struct, value] = [new WireWriter(), new WireWriter()];
      for (let index = 0; index < members; index++) {
        const entry = new WireWriter();
        entry.text(1, `k${index}`);
        struct.block(1, entry.finish());
      }
      value.block(5, struct.finish());
      return value.finish();
    };
    expect(send.decode(withData(wide(20_000)))).toMatchObject({ ok: true });
    expect(send.decode(withData(wide(20_001)))).toMatchObject({
      violations: [{ description: expect.stringContaining('members') }],
    });
  });

  it('cannot hold too many values in all their parts', () => {
    const nulls = (length: number): Buffer => {
      const value = new WireWriter();
      value.inBlock(6, () => {
        for (let index = 0; index < length; index++) value.inBlock(1, () => value.varint(1, 0));
      });
      return value.finish();
    };
    expect(send.decode(withData(nulls(49_000), nulls(49_000)))).toMatchObject({ ok: true });
    expect(send.decode(withData(nulls(51_000), nulls(49_000)))).toMatchObject({
      violations: [{ description: expect.stringContaining('more than 100000 values') }],
    });
  });

  it.each([
    ['a field of a message', () => repeated([0x12, 0])],
    ['a text', () => within(2, repeated([0x0a, 0]))],
    ['an unknown field', () => repeated([0x78, 0])],
    ['a kind of a value', () => withData(repeated([0x2a, 0]))],
    ['a name of a member', () => withData(within(5, within(1, repeated([0x0a, 0]))))],
  ])('cannot repeat %s without limit', (_, bytes) => {
    expect(send.decode(bytes())).toMatchObject({
      violations: [{ description: expect.stringContaining('more than 100000 values') }],
    });
  });

  it('set no prototype', () => {
    const plain = A2AService.sendMessage.requestSerialize(
      sdk.SendMessageRequest.fromJSON({ message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] } }),
    );
    const metadata = new WireWriter();
    metadata.inBlock(4, () => writeStruct(metadata, JSON.parse('{"__proto__":{"admin":true},"a":1}')));
    const decoded = send.decode(Buffer.concat([plain, metadata.finish()]));
    expect(decoded).toMatchObject({ ok: true, operation: { params: { metadata: { a: 1 } } } });
    expect(JSON.stringify(decoded)).not.toContain('admin');
  });
});

describe('an error', () => {
  const violations = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ field: `f${index}`, description: 'x'.repeat(100) }));

  it('is a google.rpc.Status that the official SDK reads', () => {
    const error = new RialtoError('task_not_found', { data: { taskId: 't-1' } });
    const { code, message: text, details } = decodeStatus(statusBytes(grpcStatus(error, { requestId: 'r-1' })));
    expect([code, text]).toEqual([5, error.message]);
    expect(details.map(({ typeUrl }) => typeUrl)).toEqual(['type.googleapis.com/google.rpc.ErrorInfo']);
    expect(decodeErrorInfo(details[0]!.value)).toEqual({
      reason: 'TASK_NOT_FOUND',
      domain: 'a2a-protocol.org',
      metadata: { taskId: 't-1', requestId: 'r-1' },
    });
  });

  it('stays small enough for trailers', () => {
    const many = grpcStatus(new RialtoError('invalid_params', { message: 'no', violations: violations(5_000) }));
    expect(statusBytes(many).length).toBeLessThan(4_097);
    expect(decodeStatus(statusBytes(many)).details).toHaveLength(1);
    const wordy = [{ field: 'f', description: 'x'.repeat(9_000) }];
    const large = grpcStatus(new RialtoError('invalid_params', { violations: wordy }), { requestId: 'r' });
    expect(statusBytes(large).length).toBeLessThan(4_097);
    const long = grpcStatus(new RialtoError('invalid_params', { message: 'ü'.repeat(50_000) }));
    expect(statusBytes(long).length).toBeLessThan(4_097);
  });
});
