import type { JsonObject } from '../kernel/json.js';
import { checkedResult } from './upstream-result.js';

describe('a result of an MCP server', () => {
  it.each<[JsonObject, JsonObject]>([
    [{ structuredContent: { a: 1 } }, { content: [], structuredContent: { a: 1 } }],
    [
      { content: null, structuredContent: { a: 1 }, resultType: 'complete' },
      { content: [], structuredContent: { a: 1 } },
    ],
    [{ isError: true }, { content: [], isError: true }],
    [{}, { content: [] }],
  ])('gets an empty content list when a tool result has none: %j (C33)', async (given, result) =>
    expect(await checkedResult(given, 'tool')).toEqual(result),
  );

  it.each<[JsonObject, 'tool' | 'resource' | 'prompt' | 'completion']>([
    [{ content: 'text' }, 'tool'],
    [{ content: {} }, 'tool'],
    [{ contents: null }, 'resource'],
    [{}, 'prompt'],
    [{ completion: {} }, 'completion'],
  ])('is refused when the required member is missing or malformed: %j of a %s', (given, kind) =>
    expect(checkedResult(given, kind)).rejects.toThrow(`invalid ${kind} result`),
  );
});
