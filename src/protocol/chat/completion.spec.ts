import type { Json } from '../../kernel/json.js';
import { completionOf, CompletionReader } from './completion.js';

const chunk = (delta: Json, finish: string | null = null): Json => ({ choices: [{ delta, finish_reason: finish }] });
const read = (...chunks: Json[]) => {
  const reader = new CompletionReader();
  const texts = chunks.map((one) => reader.addChunk(one));
  return { reader, texts, completion: reader.completion() };
};
const piece = (index: number | undefined, args: string, name?: string, id?: string): Json =>
  chunk({
    tool_calls: [
      {
        ...(index !== undefined && { index }),
        ...(id !== undefined && { id }),
        function: { ...(name !== undefined && { name }), arguments: args },
      },
    ],
  });

describe('the chunks of a completion', () => {
  it('add up to the text of the completion', () => {
    const { texts, completion, reader } = read(
      chunk({ role: 'assistant', content: null }),
      chunk({ content: 'Hel' }),
      chunk({ content: 'lo' }),
      chunk({}, 'stop'),
      { choices: [], usage: { completion_tokens: 7 } },
    );
    expect(texts).toEqual(['', 'Hel', 'lo', '', '']);
    expect(completion).toEqual({ text: 'Hello', calls: [], finish: 'stop', tokens: 7 });
    expect(reader.isFinished).toBe(true);
    expect(read(chunk({ content: 'Hel' })).reader.isFinished).toBe(false);
  });

  it('add up to calls, by their indexes', () => {
    const { completion } = read(
      piece(0, '{"a"', 'one', 'x'),
      piece(1, '', 'two', 'y'),
      piece(0, ':1}'),
      piece(1, '{}'),
      chunk({}, 'tool_calls'),
    );
    expect(completion.calls).toEqual([
      { id: 'x', name: 'one', arguments: '{"a":1}' },
      { id: 'y', name: 'two', arguments: '{}' },
    ]);
  });

  it('can be whole calls without indexes, ids, or text as arguments', () => {
    const { completion } = read(
      piece(undefined, '{}', 'one'),
      piece(undefined, '{"b"', 'two'),
      piece(undefined, ':2}'),
      {
        choices: [{ delta: { tool_calls: [{ function: { name: 'three', arguments: { c: 3 } } }] } }],
      },
    );
    expect(completion.calls).toEqual([
      { id: 'call_0', name: 'one', arguments: '{}' },
      { id: 'call_1', name: 'two', arguments: '{"b":2}' },
      { id: 'call_2', name: 'three', arguments: '{"c":3}' },
    ]);
  });

  it('have all text that cannot be stored replaced', () => {
    const { completion } = read(
      chunk({ content: 'a\u0000' }),
      chunk({ content: '\ud83d' }),
      piece(0, '\udc00', 'n', 'i'),
    );
    expect([completion.text, completion.calls[0]!.arguments]).toEqual(['a\uFFFD\uFFFD', '\uFFFD']);
  });

  it.each<[string, Json]>([
    ['not an object', []],
    ['without choices', { hello: 1 }],
    ['with a choice that is not an object', { choices: ['x'] }],
    ['with more than 64 tool calls', chunk({ tool_calls: Array<Json>(65).fill({ function: { name: 'n' } }) })],
  ])('are refused when one is %s', (_what, bad) => {
    expect(() => read(bad)).toThrow(/the answer of the model server/);
  });

  it('can be an error', () => {
    expect(() => read({ error: { message: 'secret' } })).toThrow('the model server stopped with an error');
  });
});

describe('a whole completion', () => {
  it('is read like a stream', () => {
    const tool_calls: Json = [
      { id: 'x', function: { name: 'one', arguments: '{}' } },
      { function: { name: 'two', arguments: '{"b":2}' } },
    ];
    const message = { role: 'assistant', content: 'Hello', tool_calls };
    const usage = { completion_tokens: 3 };
    expect(completionOf({ choices: [{ message, finish_reason: 'tool_calls' }], usage })).toEqual({
      text: 'Hello',
      calls: [
        { id: 'x', name: 'one', arguments: '{}' },
        { id: 'call_1', name: 'two', arguments: '{"b":2}' },
      ],
      finish: 'tool_calls',
      tokens: 3,
    });
    expect(completionOf({ choices: [{ message: { content: 'Hi' } }] })).toMatchObject({ text: 'Hi', finish: 'stop' });
    expect(() => completionOf({ choices: [] })).toThrow('has no choice');
  });
});
