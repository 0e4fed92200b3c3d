import { invalidArguments, toolResult } from './tool-result.js';

describe('toolResult', () => {
  it('RE-21 writes an object as its JSON and as structured content, without loss', () => {
    const output = { a: [null, 'ü', 1.5], nested: { '': {} } };
    const result = toolResult(output);
    expect(result.structuredContent).toBe(output);
    expect(JSON.parse(result.content[0]!.text)).toEqual(output);
  });

  it('RE-22 writes a string as text, unchanged', () => {
    expect(toolResult('a "b"')).toEqual({ content: [{ type: 'text', text: 'a "b"' }] });
  });

  it.each([
    [null, 'null'],
    [5, '5'],
    [true, 'true'],
    [[1, { a: 2 }], '[1,{"a":2}]'],
  ])('%j is JSON text only', (output, text) =>
    expect(toolResult(output)).toEqual({ content: [{ type: 'text', text }] }),
  );

  it('passes _meta on', () => expect(toolResult('x', { 'a.b/c': 1 })._meta).toEqual({ 'a.b/c': 1 }));
});

it('RE-12 writes invalid arguments as a result that the model can read', () => {
  expect(
    invalidArguments([
      { field: '/a', description: 'must be string' },
      { field: '', description: "must have required property 'b'" },
    ]),
  ).toEqual({
    content: [
      { type: 'text', text: "Invalid arguments\n- /a: must be string\n- arguments: must have required property 'b'" },
    ],
    isError: true,
  });
});
