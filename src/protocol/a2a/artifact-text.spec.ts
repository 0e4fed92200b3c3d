import { artifactsText, artifactText } from './artifact-text.js';

describe('the text of an artifact', () => {
  it('(N2) joins adjacent chunks to one text', () => {
    const chunks = ['The', ' capital', ' is', '', ' Paris', '.\n', 'Next'].map((text) => ({ text }));
    expect(artifactText(chunks)).toBe('The capital is Paris.\nNext');
    expect(artifactsText([{ parts: chunks }, { parts: [{ data: 1 }] }, { parts: [{ text: 'b' }] }])).toBe(
      'The capital is Paris.\nNext\nb',
    );
  });

  it('starts a new line after a part that is not text', () => {
    const parts = [{ text: 'a' }, { data: 1 }, { text: 'b' }, { text: 'c' }];
    expect(artifactText(parts)).toBe('a\nbc');
    expect(artifactText(parts, ({ data }) => JSON.stringify(data))).toBe('a\n1\nbc');
    expect(artifactText([])).toBe('');
  });
});
