import type { Part } from '../../protocol/a2a/model.js';
import { argumentsIn } from './message-arguments.js';

const word = { type: 'string' };
const one = { type: 'object', properties: { word, times: { type: 'integer' } }, required: ['word'] };
const two = { type: 'object', properties: { to: word, subject: word }, required: ['to', 'subject'] };
const none = { type: 'object', properties: { word } };

describe('the arguments in a message', () => {
  it.each<[string, Part[], object, object]>([
    ['a data part', [{ text: 'please' }, { data: { to: 'a' } }], two, { to: 'a' }],
    ['a text that is a JSON object', [{ text: ' {"to": "a"}' }], two, { to: 'a' }],
    ['the one text that is required', [{ text: 'a' }, { text: 'b' }], one, { word: 'a\nb' }],
    ['braces that are not JSON', [{ text: '{a}' }], one, { word: '{a}' }],
    ['a list in JSON', [{ text: '[1]' }], one, { word: '[1]' }],
    ['nothing when nothing is required', [{ text: ' ' }], none, {}],
    ['only files when nothing is required', [{ url: 'file:///a' }], none, {}],
  ])('are %s', (_what, parts, schema, args) => {
    expect(argumentsIn({ parts }, schema as never)).toEqual({ ok: true, args });
  });

  it.each<[string, Part[], object]>([
    ['two data parts', [{ data: { a: 1 } }, { data: { b: 1 } }], two],
    ['a list as data', [{ data: [1] }], two],
    ['a text for two properties', [{ text: 'a' }], two],
    ['a text for none', [{ text: 'a' }], none],
    ['an empty text for one', [{ text: '' }], one],
    ['a text for a number', [{ text: '1' }], { properties: { n: { type: 'integer' } }, required: ['n'] }],
    ['a text for a property without a schema', [{ text: 'a' }], { properties: {}, required: ['toString'] }],
  ])('are not %s', (_what, parts, schema) => {
    expect(argumentsIn({ parts }, schema as never)).toEqual({
      ok: false,
      reason: expect.stringContaining('data part'),
    });
  });
});
