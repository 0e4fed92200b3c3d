import { assistantMessage, chatMessage, listedFunction } from './messages.js';

describe('a message of a conversation', () => {
  it('has texts, data and urls as text, in their order', () => {
    const parts = [
      { text: 'look' },
      { data: { a: [1] } },
      { url: 'https://a/b', filename: 'b.txt', mediaType: 'text/plain' },
      { raw: 'AAAA', mediaType: 'application/pdf' },
      { raw: 'AAAA' },
    ];
    expect(chatMessage({ role: 'ROLE_USER', parts })).toEqual({
      role: 'user',
      content: 'look\n{"a":[1]}\n[b.txt, text/plain: https://a/b]\n[application/pdf]\n[a file]',
    });
    expect(chatMessage({ role: 'ROLE_AGENT', parts: [{ text: 'seen' }] })).toEqual({
      role: 'assistant',
      content: 'seen',
    });
  });

  it('shows images only to a model that sees them', () => {
    const parts = [{ text: 'what is this?' }, { raw: 'AAAA', mediaType: 'image/png' }];
    expect(chatMessage({ role: 'ROLE_USER', parts }).content).toEqual([
      { type: 'text', text: 'what is this?' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    ]);
    expect(chatMessage({ role: 'ROLE_USER', parts }, false).content).toBe('what is this?\n[image/png]');
  });

  it('of the model repeats its calls', () => {
    expect(assistantMessage({ text: 'Hi', calls: [] })).toEqual({ role: 'assistant', content: 'Hi' });
    expect(assistantMessage({ text: '', calls: [{ id: 'x', name: 'n', arguments: '{}' }] })).toEqual({
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'x', type: 'function', function: { name: 'n', arguments: '{}' } }],
    });
  });

  it('lists functions with descriptions that are short enough for servers', () => {
    const { function: listed } = listedFunction({ name: 'n', description: 'd'.repeat(2_000), parameters: {} });
    expect((listed as { description: string }).description).toHaveLength(1_024);
  });
});
