import { matches, resultText } from './llm-tools.js';

describe('the name of a tool', () => {
  it.each([
    ['files__read', 'files__read', true],
    ['files__read', 'files__reads', false],
    ['files__*', 'files__read', true],
    ['files__*', 'xfiles__read', false],
    ['*read*', 'files__read_all', true],
    ['a*b*c', 'a_b_b_c', true],
    ['a*b*c', 'a_c', false],
    ['ab*ba', 'aba', false],
    ['*', 'anything', true],
    ['files.read', 'files_read', false],
  ])('%s: %s is %s', (pattern, name, fits) => expect(matches(name, [pattern])).toBe(fits));
});

describe('the result of a tool for a model', () => {
  const text = (words: string) => ({ type: 'text', text: words });
  it.each([
    [{ content: [text('a'), text('b')], structuredContent: { n: 1 } }, 'a\nb'],
    [{ content: [], structuredContent: { n: 1 } }, '{"n":1}'],
    [{ content: [text('see'), { type: 'image', data: 'AAAA', mimeType: 'image/png' }] }, 'see\n[image]'],
    [{ content: [text('no paper')], isError: true }, 'Error: no paper'],
    [{ content: [] }, 'done'],
  ])('%#', (result, words) => expect(resultText(result as never)).toBe(words));

  it('is cut to 20,000 characters', () => {
    expect(resultText({ content: [text('x'.repeat(30_000))] })).toHaveLength(20_001);
  });
});
