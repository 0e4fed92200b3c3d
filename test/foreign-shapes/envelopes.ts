import type { Shape } from './shape.js';

const ok = { jsonrpc: '2.0', id: 1 };
const error = { code: -32_001, message: 'no' };

/** JSON-RPC answers. */
export const responses: readonly Shape[] = [
  ['JSON-RPC 2.0 section 5', { ...ok, result: {} }, { id: 1, result: {} }],
  ['JSON-RPC 2.0 section 5, a result of null', { ...ok, result: null }, { result: null }],
  ['JSON-RPC 2.0 section 5.1', { ...ok, error }, { id: 1, error }],
  ['JSON-RPC 2.0 section 5.1, data', { ...ok, error: { ...error, data: [1] } }, { error: { data: [1] } }],
  ['JSON-RPC 2.0 section 5, an error for no request', { jsonrpc: '2.0', id: null, error }, { id: null }],
  ['a2a-python 0.2, result null beside an error', { ...ok, result: null, error }, { error }],
  ['pydantic, error null beside a result', { ...ok, result: {}, error: null }, { result: {} }],
  ['hand-written, an error without id', { jsonrpc: '2.0', error }, { id: null, error }],
  ['JSON-RPC 2.0 section 4, an id that is a text', { ...ok, id: 'x', result: 1 }, { id: 'x' }],
  ['no envelope', { result: {} }, /no JSON-RPC 2\.0 envelope/],
  ['JSON-RPC 1.0', { id: 1, result: {}, error: null }, /no JSON-RPC 2\.0 envelope/],
  ['both result and error', { ...ok, result: {}, error }, /both result and error/],
  ['neither', ok, /neither result nor error/],
  ['an error that is a text', { ...ok, error: 'no' }, /error has no code/],
  ['an id that is an object', { ...ok, id: {}, result: 1 }, /its id is not/],
];

/** JSON-RPC requests. */
export const calls: readonly Shape[] = [
  ['JSON-RPC 2.0 section 4', { ...ok, method: 'a', params: {} }, { id: 1, method: 'a', params: {} }],
  ['JSON-RPC 2.0 section 4.1, a notification', { jsonrpc: '2.0', method: 'a' }, { method: 'a' }],
  ['JSON-RPC 2.0 section 4.2, params by position', { ...ok, method: 'a', params: [1] }, { params: [1] }],
  ['JSON-RPC 2.0 section 4, an id of null', { jsonrpc: '2.0', id: null, method: 'a' }, { id: null }],
  ['JSON-RPC 2.0 section 4, an id with a fraction', { ...ok, id: 1.5, method: 'a' }, { id: 1.5 }],
  ['a list', [], /a request must be an object/],
  ['no version', { id: 1, method: 'a' }, /jsonrpc must be "2\.0"/],
  ['a version that is a number', { jsonrpc: 2, id: 1, method: 'a' }, /jsonrpc must be "2\.0"/],
  ['no method', ok, /method must be a non-empty string/],
  ['an id that is a list', { ...ok, id: [1], method: 'a' }, /id must be a string, a number or null/],
  ['params that are a text', { ...ok, method: 'a', params: 'x' }, /params must be an object or an array/],
];

/** Streams as text. */
export const streams: readonly Shape[] = [
  ['HTML 9.2.6', 'data: a\n\n', [{ event: 'message', data: 'a' }]],
  ['HTML 9.2.6, several lines', 'data: a\ndata: b\n\n', [{ data: 'a\nb' }]],
  ['sse-starlette (a2a-python), CRLF', 'data: a\r\n\r\n', [{ data: 'a' }]],
  ['HTML 9.2.6, CR alone', 'data: a\r\rdata: b\r\r', [{ data: 'a' }, { data: 'b' }]],
  ['sse-starlette, ping', ': ping - 2025-01-01\r\n\r\ndata: a\r\n\r\n', [{ data: 'a' }]],
  ['ASP.NET (a2a-dotnet), no blank after the colon', 'data:a\n\n', [{ data: 'a' }]],
  ['MCP SDK, event and id', 'event: message\nid: 7\ndata: a\n\n', [{ event: 'message', id: '7', data: 'a' }]],
  [
    'MCP SSE transport of 2024-11-05',
    'event: endpoint\ndata: /messages?s=1\n\n',
    [{ event: 'endpoint', data: '/messages?s=1' }],
  ],
  [
    'MCP 2025-11-25, an id with empty data and retry',
    'id: 1\nretry: 500\ndata:\n\n',
    [{ id: '1', retry: 500, data: '' }],
  ],
  ['HTML 9.2.6, a byte order mark', '\uFEFFdata: a\n\n', [{ data: 'a' }]],
  ['HTML 9.2.6, an unknown field', 'foo: 1\ndata: a\n\n', [{ data: 'a' }]],
  ['HTML 9.2.6, an event without data', 'event: x\n\ndata: a\n\n', [{ event: 'message', data: 'a' }]],
  ['HTML 9.2.6, an id with NUL', 'id: a\u0000\ndata: a\n\n', [{ data: 'a' }]],
  ['HTML 9.2.6, a retry that is no number', 'retry: soon\ndata: a\n\n', [{ data: 'a' }]],
  ['a stream that ends in an event', 'data: a\n\ndata: b\n', [{ data: 'a' }]],
  ['OpenAI-like end', 'data: a\n\ndata: [DONE]\n\n', [{ data: 'a' }, { data: '[DONE]' }]],
  ['a line beyond the limit', `data: ${'a'.repeat(2_000_000)}\n\n`, /stream|limit|larger|long/],
];
