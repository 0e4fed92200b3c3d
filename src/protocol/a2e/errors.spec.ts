import { errorCodes, RialtoError, type ErrorCode } from '../../kernel/errors.js';
import { a2eCodeOf, a2eCodes, a2eError, A2eRefusal, type Subject } from './errors.js';

const ofServer = (code: number) =>
  new RialtoError('remote_error', { message: 'm', data: { server: 's', relayed: { code } } });

describe('the errors of A2E messages', () => {
  it.each([
    ['AE-26', new RialtoError('not_found'), 'server', 'mcp_server_not_found'],
    ['AE-28', new RialtoError('not_found'), 'tool', 'mcp_tool_not_found'],
    ['AE-28 AE-67', ofServer(-32602), 'tool', 'mcp_tool_not_found'],
    ['AE-67', ofServer(-32601), 'tool', 'mcp_protocol_error'],
    ['AE-67', ofServer(-32000), 'tool', 'mcp_protocol_error'],
    ['AE-29', new RialtoError('not_found'), 'resource', 'mcp_resource_not_found'],
    ['AE-29', ofServer(-32002), 'resource', 'mcp_resource_not_found'],
    ['AE-29', ofServer(-32602), 'resource', 'mcp_resource_not_found'],
    ['AE-30', new RialtoError('not_found'), 'prompt', 'mcp_prompt_not_found'],
    ['AE-30', ofServer(-32602), 'prompt', 'mcp_protocol_error'],
    ['AE-27', new RialtoError('unavailable'), 'tool', 'mcp_unavailable'],
    ['AE-67', new RialtoError('remote_timeout'), 'tool', 'mcp_unavailable'],
    ['AE-31', new RialtoError('remote_transport'), 'tool', 'mcp_transport_error'],
    ['AE-70', new Error('a failure of the gateway'), 'tool', 'mcp_transport_error'],
    ['AE-32', new RialtoError('remote_invalid_response'), 'tool', 'mcp_protocol_error'],
    ['AE-33', new A2eRefusal('mcp_sampling_refused', 'no'), 'message', 'mcp_sampling_refused'],
    ['AE-34', new RialtoError('unprocessable'), 'resource', 'mcp_capability_missing'],
    ['AE-34', new RialtoError('unsupported_operation'), 'tool', 'mcp_capability_missing'],
    ['', new RialtoError('unprocessable'), 'server', 'mcp_protocol_error'],
    ['', new RialtoError('denied'), 'tool', 'mcp_denied'],
    ['', new RialtoError('invalid_params'), 'tool', 'mcp_protocol_error'],
  ] as const)('%s %s about a %s is %s', (_id, thrown, subject: Subject, code) => {
    expect(a2eCodeOf(thrown, subject)).toBe(code);
  });

  it('AE-35 each code begins with mcp_; only two are retryable, and the reply states it twice', () => {
    expect(a2eCodes.filter((code) => !code.startsWith('mcp_'))).toEqual([]);
    const all = (Object.keys(errorCodes) as ErrorCode[]).map((code) => a2eError(new RialtoError(code), 'tool'));
    for (const { code, retryable, data } of [...all, a2eError(new A2eRefusal('mcp_denied', 'no'), 'tool')]) {
      expect(a2eCodes).toContain(code);
      expect([code, retryable]).toEqual([code, code === 'mcp_unavailable' || code === 'mcp_transport_error']);
      expect(data).toMatchObject({ retryable });
    }
  });

  it('AE-70 a failure of the gateway shows only its title', () => {
    expect(a2eError(new Error('the password is x'), 'tool')).toEqual({
      code: 'mcp_transport_error',
      message: 'Internal error',
      retryable: true,
      data: { retryable: true, reason: 'internal' },
    });
  });

  it('the error of an MCP server is passed on next to the code of the gateway', () => {
    expect(a2eError(ofServer(-32000), 'tool')).toEqual({
      code: 'mcp_protocol_error',
      message: 'm',
      retryable: false,
      data: { server: 's', retryable: false, reason: 'remote_error', mcp: { code: -32000 } },
    });
  });
});
