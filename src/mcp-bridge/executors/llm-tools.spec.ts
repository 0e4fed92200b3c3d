import { resultText } from './llm-tools.js';

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
