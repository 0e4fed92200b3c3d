import { errorCodes, RialtoError, type ErrorCode } from '../../kernel/errors.js';
import { mcpError } from './errors.js';

describe('mcpError', () => {
  it.each<[string, ErrorCode, number, string | undefined]>([
    ['RE-30', 'denied', -32003, 'AuthorizationError'],
    ['RE-27', 'remote_timeout', -32201, 'RemoteA2ATimeoutError'],
    ['RE-28', 'remote_transport', -32202, 'RemoteA2ATransportError'],
    ['RE-29', 'remote_invalid_response', -32203, 'RemoteA2AInvalidResponseError'],
    ['RE-24', 'remote_task_failed', -32204, 'RemoteA2ATaskFailedError'],
    ['RE-24', 'remote_lost', -32204, 'RemoteA2ATaskFailedError'],
    ['RE-89', 'remote_error', -32204, 'RemoteA2ATaskFailedError'],
    ['RE-82', 'invalid_params', -32602, undefined],
    ['RE-82', 'not_found', -32602, undefined],
    ['RE-82', 'task_not_found', -32602, undefined],
    ['RE-82', 'rate_limited', -32603, undefined],
    ['RE-82', 'unavailable', -32603, undefined],
    ['RE-82', 'internal', -32603, undefined],
    ['D9', 'unauthenticated', -32000, undefined],
  ])('%s %s is %i', (_row, code, wire, name) => {
    const error = mcpError(new RialtoError(code));
    expect([error.code, error.data.code, error.data.name]).toEqual([wire, code, name]);
  });

  it('RE-24 RE-89 carries the message, the hint and the facts', () => {
    const data = { remoteCode: -32602, remoteMessage: 'no', code: 'spoofed', name: 'spoofed' };
    expect(mcpError(new RialtoError('remote_error', { message: 'no', hint: 'ask', data }))).toEqual({
      code: -32204,
      message: 'no',
      data: {
        remoteCode: -32602,
        remoteMessage: 'no',
        hint: 'ask',
        code: 'remote_error',
        name: 'RemoteA2ATaskFailedError',
      },
    });
    const violations = [{ field: '/a', description: 'x' }];
    expect(mcpError(new RialtoError('invalid_params', { violations })).data.violations).toEqual(violations);
  });

  it('reveals nothing of an error that is not public', () => {
    const secret = new RialtoError('internal', { message: 'password is hunter2', hint: 'h', data: { sql: 's' } });
    for (const thrown of [secret, new Error('hunter2'), 'hunter2', undefined]) {
      expect(mcpError(thrown)).toEqual({ code: -32603, message: 'Internal error', data: { code: 'internal' } });
    }
  });

  it('has a JSON-RPC code for every error code', () => {
    for (const code of Object.keys(errorCodes) as ErrorCode[])
      expect(mcpError(new RialtoError(code)).code).toBeLessThan(-31_999);
  });
});
