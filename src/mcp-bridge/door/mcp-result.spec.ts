import { parseExact } from '../../protocol/exact-integers.js';
import { legacyText, modernText, resultObject, type McpResult } from './mcp-result.js';

const description = { serverInfo: { name: 'rialto' } };
const gatewayMeta = { 'io.modelcontextprotocol/serverInfo': { name: 'rialto' } };
const value = (of: object): McpResult => ({ kind: 'value', value: of });
const page = (nextCursor?: string): McpResult => ({
  kind: 'page',
  list: 'tools',
  page: { texts: ['{"name":"a","max":12345678901234567890}', '{"name":"b"}'], nextCursor },
});
const modern = (result: McpResult): unknown => JSON.parse(modernText(result, description) as string);

describe('the text of a result', () => {
  it('has type and server in the 2026-07-28 revision only', () => {
    expect(legacyText(value({ content: [] }))).toBe('{"content":[]}');
    expect(modern(value({ content: [] }))).toEqual({ content: [], resultType: 'complete', _meta: gatewayMeta });
  });

  it('keeps the type that a result has, wherever it stands, and the _meta of a server', () => {
    const asked = { inputRequests: {}, resultType: 'input_required', _meta: { own: 1 } };
    expect(modern(value(asked))).toEqual({ ...asked, _meta: { own: 1, ...gatewayMeta } });
    expect((modernText(value(asked), description) as string).match(/"resultType"/g)).toHaveLength(1);
  });

  it('keeps the digits of long integers', () => {
    const result = value(parseExact('{"structuredContent":{"id":12345678901234567890}}') as object);
    for (const text of [legacyText(result), modernText(result, description), modernText(page(), description)])
      expect(text).toContain('12345678901234567890');
  });

  it('contains the items of a page as they are, and a cursor only when there is a next page', () => {
    const items = '{"tools":[{"name":"a","max":12345678901234567890},{"name":"b"}]';
    expect(legacyText(page())).toBe(`${items}}`);
    expect(legacyText(page('next'))).toBe(`${items},"nextCursor":"next"}`);
    expect(modern(page('next'))).toMatchObject({
      nextCursor: 'next',
      ttlMs: 0,
      cacheScope: 'private',
      resultType: 'complete',
      _meta: gatewayMeta,
    });
    expect(resultObject(page())).toEqual({ tools: [{ name: 'a', max: 12345678901234567890n }, { name: 'b' }] });
  });
});
