import type { Json, JsonObject } from '../../kernel/json.js';
import { partsOf, textOfResult } from './result-parts.js';

const text = (words: string) => ({ type: 'text', text: words });

describe('the result of a tool as parts', () => {
  it('keeps each kind of content, in its order', () => {
    const content: Json[] = [
      text('one'),
      { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      { type: 'audio', data: 'BBBB', mimeType: 'audio/wav' },
      { type: 'resource_link', uri: 'file:///a', name: 'a', mimeType: 'text/plain' },
      { type: 'resource', resource: { uri: 'test://t', text: 't', mimeType: 'text/plain' } },
      { type: 'resource', resource: { uri: 'test://b', blob: 'CCCC' } },
    ];
    expect(partsOf({ content })).toEqual([
      { text: 'one' },
      { raw: 'AAAA', mediaType: 'image/png' },
      { raw: 'BBBB', mediaType: 'audio/wav' },
      { url: 'file:///a', filename: 'a', mediaType: 'text/plain' },
      { text: 't', mediaType: 'text/plain', metadata: { uri: 'test://t' } },
      { raw: 'CCCC', metadata: { uri: 'test://b' } },
    ]);
  });

  it('has the structured content once, as data', () => {
    const content = [text('{"b": [1], "a": 2}'), text('{"a": 2}'), text('sum')];
    expect(partsOf({ content, structuredContent: { a: 2, b: [1] } })).toEqual([
      { text: '{"a": 2}' },
      { text: 'sum' },
      { data: { a: 2, b: [1] } },
    ]);
  });

  it('keeps unknown content as data, and drops invalid blocks', () => {
    const unknown: JsonObject[] = [
      { type: 'hologram', rays: 3 },
      { type: 'resource', resource: { uri: 'test://x' } },
    ];
    expect(partsOf({ content: [...unknown, 'no block', null] })).toEqual(unknown.map((data) => ({ data })));
    expect(partsOf({})).toEqual([]);
  });

  it('joins its texts', () => {
    expect(textOfResult({ content: [text('a'), { type: 'image', data: 'AAAA' }, text('b')] })).toBe('a\nb');
    expect(textOfResult({})).toBe('');
  });
});
