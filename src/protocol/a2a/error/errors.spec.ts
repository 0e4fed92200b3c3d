import {
  fromJsonRpcErrorResponse,
  fromRestErrorBody,
  restStatusFor,
  TaskNotFoundError,
  VersionNotSupportedError,
} from '@a2a-js/sdk/errors';
import { errorCodes, RialtoError, type ErrorCode } from '../../../kernel/errors.js';
import { errorRows, type ErrorRow } from './error-table.js';
import { grpcStatus, httpError, jsonRpcError, jsonRpcStatus } from './errors.js';

const codes = Object.keys(errorCodes) as ErrorCode[];
const info = 'type.googleapis.com/google.rpc.ErrorInfo';

// v1.0 section 5.4, in v1.0.1 and in v1.0.0.
const table: [ErrorCode, number, string, [number, number], [number, number]][] = [
  ['task_not_found', -32001, 'TASK_NOT_FOUND', [404, 5], [404, 5]],
  ['task_not_cancelable', -32002, 'TASK_NOT_CANCELABLE', [400, 9], [409, 9]],
  ['push_not_supported', -32003, 'PUSH_NOTIFICATION_NOT_SUPPORTED', [400, 9], [400, 12]],
  ['unsupported_operation', -32004, 'UNSUPPORTED_OPERATION', [400, 9], [400, 12]],
  ['content_type_not_supported', -32005, 'CONTENT_TYPE_NOT_SUPPORTED', [400, 3], [415, 3]],
  ['remote_invalid_response', -32006, 'INVALID_AGENT_RESPONSE', [500, 13], [502, 13]],
  ['extended_card_not_configured', -32007, 'EXTENDED_AGENT_CARD_NOT_CONFIGURED', [400, 9], [400, 9]],
  ['extension_required', -32008, 'EXTENSION_SUPPORT_REQUIRED', [400, 9], [400, 9]],
  ['version_not_supported', -32009, 'VERSION_NOT_SUPPORTED', [400, 9], [400, 12]],
];

describe.each(table)('%s', (code, rpc, reason, newer, older) => {
  const error = new RialtoError(code, { data: { taskId: 't1', attempts: 2 } });
  const details = [
    { '@type': info, reason, domain: 'a2a-protocol.org', metadata: { taskId: 't1', attempts: '2', requestId: 'r1' } },
  ];

  it('has the code of the specification in JSON-RPC', () => {
    expect(jsonRpcError(error, { requestId: 'r1' })).toStrictEqual({
      code: rpc,
      message: error.message,
      data: details,
    });
    expect(jsonRpcStatus(code)).toBe(200);
  });

  it.each([
    ['1.0.1', newer],
    ['1.0.0', older],
  ] as const)('has the statuses of profile %s', (profile, [http, grpc]) => {
    const { status, body } = httpError(error, { version: '1.0', profile, requestId: 'r1' });
    expect(status).toBe(http);
    expect(body).toMatchObject({ error: { code: http, message: error.message, details } });
    expect(grpcStatus(error, { profile, requestId: 'r1' })).toStrictEqual({
      code: grpc,
      message: error.message,
      details,
    });
  });

  it('is read by the official SDK', () => {
    const read = fromJsonRpcErrorResponse({ jsonrpc: '2.0', id: 1, error: jsonRpcError(error) as never });
    expect(read).toMatchObject({ reason, envelopeCode: rpc });
    expect(restStatusFor(read)).toBe(newer[0]);
  });
});

describe('every error code', () => {
  it('has a row', () => expect(Object.keys(errorRows).sort()).toEqual([...codes].sort()));

  it.each(codes)('%s is encoded on each binding', (code) => {
    const error = new RialtoError(code, { message: 'secret detail', hint: 'do this', data: { fact: { a: 1 } } });
    const { public: isPublic, title } = errorCodes[code];
    const written = [
      jsonRpcError(error, { requestId: 'r1' }),
      httpError(error, { version: '1.0', requestId: 'r1' }).body,
      httpError(error, { version: '0.3', requestId: 'r1' }).body,
      grpcStatus(error, { requestId: 'r1' }),
    ].map((each) => JSON.stringify(each));
    for (const text of written) {
      expect(text).toContain('r1');
      expect(text.includes('secret detail')).toBe(isPublic);
      if (!isPublic) expect(text).toContain(title);
      if (!isPublic) expect(text).not.toContain('fact');
    }
    const { http }: ErrorRow = errorRows[code];
    expect(http).toBeGreaterThanOrEqual(400);
  });

  it('uses the domain of the gateway when A2A has no name', () =>
    expect(jsonRpcError(new RialtoError('unprocessable', { hint: 'h', data: { max: 3, list: ['a'] } })).data).toEqual([
      { '@type': info, reason: 'UNPROCESSABLE', domain: 'rialto', metadata: { max: '3', list: '["a"]', hint: 'h' } },
    ]));
});

describe('single errors', () => {
  it('invalid params have the violations and no reason', () => {
    const violations = [{ field: 'message.role', description: 'is required' }];
    const error = jsonRpcError(new RialtoError('invalid_params', { violations }), { requestId: 'r1' });
    expect(error).toMatchObject({
      code: -32602,
      data: [
        { '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: violations },
        { '@type': 'type.googleapis.com/google.rpc.RequestInfo', requestId: 'r1' },
      ],
    });
    expect(jsonRpcError(new RialtoError('invalid_params'))).toStrictEqual({
      code: -32602,
      message: 'Invalid parameters',
    });
  });

  it('a refused caller gets the code of the door and a real HTTP status', () => {
    expect(jsonRpcError(new RialtoError('unauthenticated')).code).toBe(-32000);
    expect(jsonRpcError(new RialtoError('denied'), { authCode: -32001 }).code).toBe(-32001);
    expect([jsonRpcStatus('unauthenticated'), jsonRpcStatus('denied')]).toEqual([401, 403]);
    expect(grpcStatus(new RialtoError('denied')).code).toBe(7);
    expect(grpcStatus(new RialtoError('unauthenticated')).code).toBe(16);
  });

  it.each<[ErrorCode, number, number]>([
    ['not_found', 404, -32602],
    ['too_large', 413, -32600],
    ['rate_limited', 429, -32000],
    ['unavailable', 503, -32603],
    ['auth_not_configured', 503, -32000],
    ['invalid_params', 200, -32602],
    ['method_not_found', 200, -32601],
    ['conflict', 200, -32602],
    ['remote_timeout', 200, -32603],
    ['internal', 200, -32603],
  ])('%s over JSON-RPC is HTTP %p with %p', (code, status, rpc) => {
    expect(jsonRpcStatus(code)).toBe(status);
    expect(jsonRpcError(new RialtoError(code)).code).toBe(rpc);
  });

  it('tells how long to wait', () =>
    expect(jsonRpcError(new RialtoError('rate_limited', { data: { retryAfterSeconds: 7 } })).data).toContainEqual({
      '@type': 'type.googleapis.com/google.rpc.RetryInfo',
      retryDelay: '7s',
    }));

  it('a failure of the gateway has the code that the door asks for', () => {
    expect(jsonRpcError(new RialtoError('internal'), { failureCode: -32000 }).code).toBe(-32000);
    expect(jsonRpcError(new RialtoError('invalid_params'), { failureCode: -32000 }).code).toBe(-32602);
  });

  it('other errors are internal and reveal nothing', () => {
    const thrown = new Error('password is hunter2');
    const rpc = jsonRpcError(thrown, { requestId: 'r1' });
    expect(rpc).toMatchObject({ code: -32603, message: 'Internal error' });
    expect(JSON.stringify([rpc, httpError(thrown, { version: '0.3' }), grpcStatus(thrown)])).not.toContain('hunter2');
  });

  it('v0.3 REST has the bare JSON-RPC error', () => {
    const { status, body } = httpError(new RialtoError('task_not_found'), { version: '0.3' });
    expect(status).toBe(404);
    expect(body).toMatchObject({ code: -32001, message: 'Task not found' });
  });

  it('the SDK reads the REST errors of the gateway', () => {
    const { body, status } = httpError(new RialtoError('task_not_found'), { version: '1.0' });
    const context = { statusCode: status, headers: {} };
    expect(fromRestErrorBody((body as { error: object }).error, context)).toBeInstanceOf(TaskNotFoundError);
    const version = httpError(new RialtoError('version_not_supported'), { version: '1.0' });
    expect(fromRestErrorBody((version.body as { error: object }).error, context)).toBeInstanceOf(
      VersionNotSupportedError,
    );
  });
});
