import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client';
import { RialtoError } from '../kernel/errors.js';
import { isSessionGone, upstreamError } from './upstream-error.js';

describe('what an MCP server and the SDK throw', () => {
  const http = (status: number) => new SdkHttpError(SdkErrorCode.SendFailed, 'no', { status });
  const own = new RialtoError('url_not_allowed');

  it.each([
    [new ProtocolError(-32_042, 'go there', { url: 'x' }), 'remote_error'],
    [http(500), 'remote_transport'],
    [new SdkError(SdkErrorCode.RequestTimeout, 'late'), 'remote_timeout'],
    [new SdkError(SdkErrorCode.InvalidResult, 'odd'), 'remote_invalid_response'],
    [new SdkError(SdkErrorCode.UnsupportedResultType, 'odd'), 'remote_invalid_response'],
    [new SdkError(SdkErrorCode.ConnectionClosed, 'gone'), 'remote_transport'],
    [new Error('who knows', { cause: own }), 'url_not_allowed'],
    [new ProtocolError(-32_603, 'odd', new RialtoError('remote_invalid_response')), 'remote_invalid_response'],
    [new ProtocolError(-32_603, 'odd', { code: 'remote_invalid_response', name: 'RialtoError' }), 'remote_error'],
    [Object.assign(new Error('[]'), { name: 'ZodError' }), 'remote_invalid_response'],
    [new TypeError('fetch failed'), 'remote_transport'],
    ['a word', 'remote_transport'],
  ])('%s has its meaning', (thrown, code) => {
    expect(upstreamError(thrown, 'own').code).toBe(code);
  });

  it('keeps what the server said for those who speak its protocol', () => {
    const { message, data } = upstreamError(new ProtocolError(-32_042, 'go there', { url: 'x' }), 'own');
    expect([message, data]).toEqual([
      'go there',
      { server: 'own', relayed: { code: -32_042, message: 'go there', data: { url: 'x' } } },
    ]);
    expect(upstreamError(http(503), 'own').data).toEqual({ server: 'own', upstreamStatus: 503 });
  });

  it('tells a session that is gone', () => {
    expect([http(404), http(400), new Error('x'), undefined].map(isSessionGone)).toEqual([true, false, false, false]);
  });
});
