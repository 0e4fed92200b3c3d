import type { JsonObject } from '../kernel/json.js';
import { resultOf } from './upstream-result.js';

describe('a result of an MCP server', () => {
  it.each<[JsonObject, JsonObject]>([
    [{ structuredContent: { a: 1 } }, { content: [], structuredContent: { a: 1 } }],
    [
      { content: null, structuredContent: { a: 1 }, resultType: 'complete' },
      { content: [], structuredContent: { a: 1 } },
    ],
    [{ isError: true }, { content: [], isError: true }],
    [{}, { content: [] }],
  ])('of a tool has an empty content where none was said: %j (C33)', (given, result) =>
    expect(resultOf(given, 'tool')).toEqual(result),
  );

  it.each<[JsonObject, 'tool' | 'resource' | 'prompt' | 'completion']>([
    [{ content: 'text' }, 'tool'],
    [{ content: {} }, 'tool'],
    [{ contents: null }, 'resource'],
    [{}, 'prompt'],
    [{ completion: {} }, 'completion'],
  ])('without what its kind must have is refused: %j of a %s', (given, kind) =>
    expect(() => resultOf(given, kind)).toThrow(`no result of a ${kind}`),
  );
});
