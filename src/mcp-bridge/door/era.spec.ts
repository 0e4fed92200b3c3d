import { eraOf } from './era.js';

const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
const headers = (method: string, name?: string) => ({
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': method,
  ...(name && { 'mcp-name': name }),
});
const body = (method: string, params: object = {}, id: unknown = 1) => ({
  jsonrpc: '2.0',
  id,
  method,
  params: { _meta: meta, ...params },
});

describe('the era of a request', () => {
  it.each([
    ['a client of 2025', {}, { jsonrpc: '2.0', id: 1, method: 'tools/list' }],
    [
      'a client that names its revision',
      { 'mcp-protocol-version': '2025-06-18' },
      { jsonrpc: '2.0', id: 1, method: 'ping' },
    ],
    ['a batch', {}, [{ jsonrpc: '2.0', id: 1, method: 'ping' }]],
    ['a progress token', {}, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { _meta: { progressToken: 1 } } }],
    ['nonsense', {}, 17],
  ])('legacy: %s', (_case, given, value) => expect(eraOf(given, value)).toBe('legacy'));

  it.each([
    ['a list', headers('tools/list'), body('tools/list')],
    ['a call', headers('tools/call', 'a'), body('tools/call', { name: 'a', arguments: {} })],
  ])('hot: %s', (_case, given, value) => expect(eraOf(given, value)).toBe('hot'));

  it.each([
    ['another method', headers('server/discover'), body('server/discover')],
    ['a header that disagrees', headers('tools/call', 'b'), body('tools/call', { name: 'a' })],
    ['no name header', headers('tools/call'), body('tools/call', { name: 'a' })],
    ['no headers', {}, body('tools/list')],
    ['a cursor that is not a string', headers('tools/list'), body('tools/list', { cursor: 7 })],
    ['a null id', headers('tools/list'), body('tools/list', {}, null)],
    ['no envelope', headers('tools/list'), { jsonrpc: '2.0', id: 1, method: 'tools/list' }],
    [
      'a revision of the future',
      { ...headers('tools/list'), 'mcp-protocol-version': '2030-01-01' },
      body('tools/list'),
    ],
  ])('left to the SDK: %s', (_case, given, value) => expect(eraOf(given, value)).toBe('modern'));
});
