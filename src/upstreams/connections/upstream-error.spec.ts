import {
  Client,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  type JSONRPCMessage,
  type Transport,
} from '@modelcontextprotocol/client';
import { RialtoError } from '../../kernel/errors.js';
import { parseAllowList } from '../../platform/http/outbound/address.js';
import { urlNotAllowed } from '../../platform/http/outbound/safe-connect.js';
import { isSessionGone, upstreamError } from './upstream-error.js';

describe('upstreamError: errors of MCP servers and the SDK', () => {
  const http = (status: number) => new SdkHttpError(SdkErrorCode.SendFailed, 'no', { status });
  const gatewayError = new RialtoError('url_not_allowed');

  it.each([
    [new ProtocolError(-32_042, 'go there', { url: 'x' }), 'remote_error'],
    [http(500), 'remote_transport'],
    [new SdkError(SdkErrorCode.RequestTimeout, 'late'), 'remote_timeout'],
    [new SdkError(SdkErrorCode.InvalidResult, 'odd'), 'remote_invalid_response'],
    [new SdkError(SdkErrorCode.UnsupportedResultType, 'odd'), 'remote_invalid_response'],
    [new SdkError(SdkErrorCode.ConnectionClosed, 'gone'), 'remote_transport'],
    [new Error('who knows', { cause: gatewayError }), 'url_not_allowed'],
    [new ProtocolError(-32_603, 'odd', new RialtoError('remote_invalid_response')), 'remote_invalid_response'],
    [new ProtocolError(-32_603, 'odd', { code: 'remote_invalid_response', name: 'RialtoError' }), 'remote_error'],
    [Object.assign(new Error('[]'), { name: 'ZodError' }), 'remote_invalid_response'],
    [new TypeError('fetch failed'), 'remote_transport'],
    ['a word', 'remote_transport'],
  ])('maps %s to %s', (thrown, code) => {
    expect(upstreamError(thrown, 'own').code).toBe(code);
  });

  it('keeps the error of the server for callers that speak its protocol', () => {
    const { message, data } = upstreamError(new ProtocolError(-32_042, 'go there', { url: 'x' }), 'own');
    expect([message, data]).toEqual([
      'go there',
      { server: 'own', relayed: { code: -32_042, message: 'go there', data: { url: 'x' } } },
    ]);
    expect(upstreamError(http(503), 'own').data).toEqual({ server: 'own', upstreamStatus: 503 });
  });

  it('recognizes a forgotten session', () => {
    expect([http(404), http(400), new Error('x'), undefined].map(isSessionGone)).toEqual([true, false, false, false]);
  });
});

describe('upstreamError: reason of a failure (C35)', () => {
  const policy = { allow: parseAllowList(''), httpsOnly: false };
  const client = (mode: 'legacy' | { pin: string } = 'legacy') =>
    new Client({ name: 'x', version: '1' }, { versionNegotiation: { mode } });
  const why = async (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => 'nothing',
      (thrown: unknown) => {
        const { code, message, data } = upstreamError(thrown, 's');
        return [code, message, data?.upstreamStatus];
      },
    );
  const http = (answer: Response) =>
    client().connect(new StreamableHTTPClientTransport(new URL('http://x'), { fetch: () => Promise.resolve(answer) }));
  /** Transport to a server that answers the first request with this result. */
  const transportWith = (result: unknown): Transport => {
    const transport: Transport = {
      start: () => Promise.resolve(),
      close: () => Promise.resolve(transport.onclose?.()),
      send: (message) => {
        if ('id' in message)
          setImmediate(() => transport.onmessage?.({ jsonrpc: '2.0', id: message.id, result } as JSONRPCMessage));
        return Promise.resolve();
      },
    };
    return transport;
  };
  const serverInfo = { name: 'x', version: '1' };

  it.each<[string, Response, unknown[]]>([
    [
      'a protocol error with an HTTP status',
      Response.json({ jsonrpc: '2.0', id: 1, error: { code: -32603, message: 'quota exceeded' } }, { status: 500 }),
      ['remote_error', 'quota exceeded', 500],
    ],
    [
      'an error without an id',
      Response.json({ jsonrpc: '2.0', id: null, error: { code: -1, message: 'busy' } }, { status: 429 }),
      ['remote_error', 'busy', 429],
    ],
    [
      'any other body',
      new Response('{"error":"no"}', { status: 500 }),
      ['remote_transport', 'the MCP server answered HTTP 500', 500],
    ],
    [
      'a refusal of the credential',
      Response.json({ jsonrpc: '2.0', id: 1, error: { code: -1, message: 'who?' } }, { status: 401 }),
      ['remote_transport', 'the MCP server answered HTTP 401', 401],
    ],
    [
      'a page',
      new Response('<html>', { headers: { 'content-type': 'text/html; charset=utf-8' } }),
      [
        'remote_invalid_response',
        'the MCP server answered with text/html instead of JSON or a stream of events',
        undefined,
      ],
    ],
    [
      'a body that is not JSON',
      new Response('{"jsonrpc":', { headers: { 'content-type': 'application/json' } }),
      ['remote_invalid_response', 'the MCP server answered with a body that is not valid JSON', undefined],
    ],
  ])('is reported: %s', async (_, answer, expected) => expect(await why(http(answer))).toEqual(expected));

  it('keeps a protocol error that came with an HTTP status, for callers that speak the protocol', async () => {
    const error = { code: -32603, message: 'quota exceeded', data: { limit: 3 } };
    const thrown = await http(Response.json({ jsonrpc: '2.0', id: 1, error }, { status: 500 })).catch(
      (one: unknown) => one,
    );
    expect(upstreamError(thrown, 's').data).toEqual({ server: 's', relayed: error, upstreamStatus: 500 });
  });

  it.each<[string, unknown, string]>([
    [
      'an unknown revision',
      { protocolVersion: '2024-06-18', capabilities: {}, serverInfo },
      'the MCP server speaks MCP 2024-06-18, which the gateway does not support: ' +
        'it supports 2024-11-05 to 2025-11-25, and 2026-07-28',
    ],
    [
      'a missing member',
      { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'x' } },
      'the MCP server sent an invalid result: serverInfo.version is missing',
    ],
    [
      'an invalid member',
      { protocolVersion: '2025-06-18', capabilities: { tools: 5 }, serverInfo },
      'the MCP server sent an invalid result: capabilities.tools: Invalid input: expected object, received number',
    ],
  ])('is reported: %s', async (_, result, message) =>
    expect(await why(client().connect(transportWith(result)))).toEqual(['remote_invalid_response', message, undefined]),
  );

  it('is reported for the HTTP+SSE transport of 2024, a pinned revision and a closed connection', async () => {
    const sse = new SSEClientTransport(new URL('http://x'), {
      fetch: () => Promise.resolve(new Response('busy', { status: 503 })),
    });
    expect(await why(client().connect(sse))).toEqual(['remote_transport', 'the MCP server answered HTTP 503', 503]);
    const posted = new Error(
      'Error POSTing to endpoint (HTTP 500): {"error":{"code":-32603,"message":"quota exceeded"}}',
    );
    expect(await why(Promise.reject(posted))).toEqual(['remote_error', 'quota exceeded', 500]);
    expect(await why(client({ pin: '2026-07-28' }).connect(transportWith({})))).toEqual([
      'remote_invalid_response',
      'the MCP server does not speak MCP 2026-07-28, which its `era` setting requires',
      undefined,
    ]);
    const closing = transportWith({});
    closing.send = () => Promise.resolve(void setImmediate(() => closing.onclose?.()));
    expect(await why(client().connect(closing))).toEqual([
      'remote_transport',
      'the MCP server closed the connection',
      undefined,
    ]);
    expect(await why(Promise.reject(new TypeError('fetch failed')))).toEqual([
      'remote_transport',
      'the MCP server could not be reached',
      undefined,
    ]);
  });

  it('does not name the host of a refused address', () => {
    const { message, hint } = upstreamError(urlNotAllowed('private_address', policy, '10.1.2.3'), 's');
    expect([message, hint]).toEqual([
      'the address of the MCP server may not be called',
      'only public addresses may be called; the setting RIALTO_OUTBOUND_ALLOW allows others',
    ]);
  });

  it.each([
    ['ECONNREFUSED', 'refused', 'the connection was refused'],
    ['ENOTFOUND', 'unknown_host', 'its host name is unknown'],
    ['CERT_HAS_EXPIRED', 'certificate', 'its TLS certificate is not valid'],
    ['UND_ERR_CONNECT_TIMEOUT', 'connect_timeout', 'no connection in time'],
  ])('says why no connection was made: %s', (code, reason, text) => {
    const cause = Object.assign(new Error(`connect ${code} 10.1.2.3:80`), { code });
    const outbound = new RialtoError('remote_transport', { cause });
    for (const thrown of [outbound, new TypeError('fetch failed', { cause: outbound }), cause]) {
      const { message, data } = upstreamError(thrown, 's');
      expect([message, data]).toEqual([`the MCP server could not be reached: ${text}`, { reason, server: 's' }]);
    }
  });
});
