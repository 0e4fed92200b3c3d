import { endsByItself } from '../../../test/support/gateway/busy.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import { fillTemplates } from './step-templates.js';

const context = {
  trigger: { project: 'shop', tries: 3, isNew: false, nothing: null, tags: ['a', 'b'], deep: { er: { still: 'x' } } },
  'with-dash': { ключ: 'ok', $id: 7 },
  recipe: '{{trigger.project}}',
};
const filled = (value: Json, from: JsonObject = context): Json => {
  const result = fillTemplates(value, from);
  if (!result.ok) throw new Error(JSON.stringify(result.violations));
  return result.value;
};
const refused = (value: Json, from: JsonObject = context) => {
  const result = fillTemplates(value, from);
  return result.ok ? undefined : result.violations;
};

describe('RE-47 templates of a step', () => {
  it.each<[string, Json]>([
    ['{{trigger.project}}', 'shop'],
    ['{{ trigger.tries }}', 3],
    ['{{trigger.isNew}}', false],
    ['{{trigger.nothing}}', null],
    ['{{trigger.tags}}', ['a', 'b']],
    ['{{trigger.tags[1]}}', 'b'],
    ['{{trigger.tags.0}}', 'a'],
    ['{{trigger.deep}}', { er: { still: 'x' } }],
    ['{{with-dash.ключ}}{{with-dash.$id}}', 'ok7'],
  ])('%s', (text, expected) => expect(filled(text)).toEqual(expected));

  it('writes a value of every type inside a text, and texts without quotes', () => {
    expect(filled('{{trigger.project}}: {{trigger.tries}} {{trigger.nothing}} {{trigger.tags}}')).toBe(
      'shop: 3 null ["a","b"]',
    );
    expect(filled(' {{trigger.tries}}')).toBe(' 3');
  });

  it('fills texts at every depth, and leaves names of members unchanged', () => {
    expect(filled({ '{{trigger.project}}': [{ a: '{{trigger.tries}}' }, 1, null, true] })).toEqual({
      '{{trigger.project}}': [{ a: 3 }, 1, null, true],
    });
  });

  it('does not fill templates in inserted values, and ignores replacement patterns', () => {
    expect(filled(['{{recipe}}', 'a {{recipe}}'])).toEqual(['{{trigger.project}}', 'a {{trigger.project}}']);
    expect(filled('a {{x}} b', { x: '$& $1 $`' })).toBe('a $& $1 $` b');
  });

  it('leaves a text that is not a template unchanged', () => {
    for (const text of ['{trigger.project}', '{{trigger.project', 'trigger.project}}', '{{a{b}}', '', '{{{{'])
      expect(filled(text)).toBe(text);
  });

  it.each([
    'absent',
    'trigger.absent',
    'trigger.project.length',
    'trigger.tags.length',
    'trigger.tags[2]',
    'trigger.tags[-1]',
    'trigger.tags[01]',
    'trigger.tags.00',
    'trigger.tags.01x',
    'trigger.nothing.more',
    'constructor',
    '__proto__',
    'trigger.__proto__.polluted',
    'trigger.constructor.constructor',
    'trigger.tags.map',
    'trigger.toString',
    '',
    '.',
    'trigger.',
    '.trigger',
    'trigger..project',
    'trigger.tags[]',
    'trigger tries',
    '1+1',
    'trigger["project"]',
    'process.env',
  ])('{{%s}} has no value', (path) => {
    expect(refused({ a: [`x {{${path}}}`] })).toEqual([
      { field: 'a.0', description: `the context has no value at {{${path}}}` },
    ]);
    expect(refused(`{{${path}}}`)).toHaveLength(1);
  });

  it('reports every path without a value, at most twenty', () => {
    expect(refused({ a: '{{x}} {{y}}', b: '{{trigger.tries}}', c: '{{z}}' })?.map(({ field }) => field)).toEqual([
      'a',
      'a',
      'c',
    ]);
    expect(refused(Array.from({ length: 500 }, () => '{{x}}'))).toHaveLength(20);
  });

  it('treats members with the names of prototype members like any other', () => {
    const hostile = JSON.parse('{"__proto__":{"polluted":1},"a":{"constructor":"mine"}}') as JsonObject;
    expect(filled('{{__proto__.polluted}} {{a.constructor}}', hostile)).toBe('1 mine');
    const made = filled(JSON.parse('{"__proto__":"{{a.constructor}}"}') as JsonObject, hostile) as JsonObject;
    expect(Object.getOwnPropertyNames(made)).toEqual(['__proto__']);
    expect(Object.getPrototypeOf(made)).toBe(Object.prototype);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  it('limits how long templates can make a short step', () => {
    const long = { text: 'x'.repeat(100_000), list: Array.from({ length: 50_000 }, () => 1) };
    expect(
      filled(
        Array.from({ length: 10 }, () => '{{text}}'),
        long,
      ),
    ).toHaveLength(10);
    for (const bomb of [
      Array.from({ length: 11 }, () => '{{text}}'),
      '{{text}}'.repeat(1_000),
      ['{{list}}'.repeat(20)],
    ])
      expect(refused(bomb, long)?.[0]?.description).toBe('the templates insert more than 1048576 characters');
  });

  it('stops looking up paths to a long value at the limit', () => {
    let written = 0;
    const toJSON = () => {
      written++;
      return 'x'.repeat(600_000);
    };
    const nested = { a: [[Object.assign([1], { toJSON })]] } as unknown as JsonObject;
    const spellings = ['{{a[0][0]}}', '{{a.0[0]}}', '{{a[0].0}}', '{{a.0.0}}', '{{ a[0][0]}}', '{{a[0][0] }}'];
    expect(refused([...spellings, '{{absent}}', spellings.join()], nested)).toEqual([
      { field: '1', description: 'the templates insert more than 1048576 characters' },
    ]);
    expect(written).toBe(2);
    expect(refused([...Array.from({ length: 20 }, () => '{{x}}'), '{{a[0][0]}}'], nested)).toHaveLength(20);
    expect(written).toBe(2);
  });

  it('handles hostile texts fast', () => {
    for (const text of [
      '{{'.repeat(400_000),
      `{{${'a.'.repeat(400_000)}}}`,
      `{{${'[1]'.repeat(400_000)}}}`,
      '{{a'.repeat(400_000),
    ])
      endsByItself(() => void fillTemplates(text, context));
  });
});
