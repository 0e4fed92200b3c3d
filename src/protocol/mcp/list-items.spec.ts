import fc from 'fast-check';
import {
  ListPromptsResultSchema,
  ListResourcesResultSchema,
  ListResourceTemplatesResultSchema,
  ListToolsResultSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import { mendItem, outputFault, type ItemList } from './list-items.js';

const schemas = {
  tools: ListToolsResultSchema,
  resources: ListResourcesResultSchema,
  resourceTemplates: ListResourceTemplatesResultSchema,
  prompts: ListPromptsResultSchema,
};
const isReadable = (list: ItemList, item: JsonObject): boolean => schemas[list].safeParse({ [list]: [item] }).success;
const tool = (more: object): JsonObject => ({ name: 't', inputSchema: { type: 'object' }, ...more });
const mendedTool = (more: object): Json | undefined => mendItem('tools', tool(more)).item;
const input = (inputSchema: object): Json | undefined =>
  (mendedTool({ inputSchema }) as JsonObject | undefined)?.inputSchema;

describe('an item of a list of an MCP server (C25)', () => {
  it('is unchanged when it is valid', () => {
    const whole = tool({
      title: 'T',
      description: 'does',
      inputSchema: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], 'x-own': [null] },
      outputSchema: { type: 'object', properties: { b: {} } },
      annotations: { readOnlyHint: true, ownHint: 7 },
      icons: [{ src: 'data:,', sizes: ['any'], theme: 'dark' }],
      execution: { taskSupport: 'optional' },
      _meta: { any: null },
      own: null,
    });
    expect(mendItem('tools', whole)).toEqual({ item: whole, problems: [] });
    expect(mendItem('tools', whole).item).toBe(whole);
  });

  it.each<[string, object, object]>([
    ['an empty list for no properties', { type: 'object', properties: [] }, { type: 'object', properties: {} }],
    ['null for no properties', { type: 'object', properties: null }, { type: 'object' }],
    ['null for nothing required', { type: 'object', required: null }, { type: 'object' }],
    ['required of draft 3', { type: 'object', required: true }, { type: 'object' }],
    [
      'a required name that is not a string',
      { type: 'object', required: ['a', 1] },
      { type: 'object', required: ['a'] },
    ],
    ['no type', { anyOf: [{}] }, { anyOf: [{}], type: 'object' }],
    ['null for a type', { type: null }, { type: 'object' }],
    ['a type among others', { type: ['object', 'null'] }, { type: 'object' }],
    [
      'schemas that are not objects',
      { type: 'object', properties: { a: true, b: false, c: null, d: { type: 'string' } } },
      { type: 'object', properties: { a: {}, b: { not: {} }, c: {}, d: { type: 'string' } } },
    ],
    ['a default of null', { type: 'object', default: null }, { type: 'object', default: null }],
  ])('gets a corrected input schema: %s', (_, given, mended) => expect(input(given)).toEqual(mended));

  it.each<[string, object]>([
    ['another type', { type: 'array' }],
    ['none of its types an object', { type: ['null', 'array'] }],
    ['properties that are a text', { type: 'object', properties: 'a' }],
    ['properties that are a list of names', { type: 'object', properties: ['a'] }],
    ['a property that is a text', { type: 'object', properties: { a: 'string' } }],
  ])('is dropped when its input schema cannot be corrected: %s', (_, inputSchema) => {
    const { item, problems } = mendItem('tools', tool({ inputSchema }));
    expect(item).toBeUndefined();
    expect(problems).toEqual([expect.stringMatching(/^inputSchema: /)]);
  });

  it.each<[string, object]>([
    ['no type', { description: 'x' }],
    ['another type', { type: ['null', 'array'] }],
    ['no schema at all', ['x']],
    ['null', null as never],
    ['properties that are a text', { type: 'object', properties: 'a' }],
  ])('loses an output schema that clients refuse: %s', (_, outputSchema) =>
    expect(mendedTool({ outputSchema })).toEqual(tool({})),
  );

  it.each<[string, object, object]>([
    ['texts', { title: null, description: 7 }, {}],
    ['hints', { annotations: { readOnlyHint: 'yes', title: 'T' } }, { annotations: { title: 'T' } }],
    ['annotations', { annotations: 'x' }, {}],
    ['a list of icons', { icons: 'x' }, {}],
    ['icons', { icons: [{ src: 1 }, { src: 'a', mimeType: null, theme: 'blue' }, null] }, { icons: [{ src: 'a' }] }],
    ['execution', { execution: { taskSupport: 'maybe' } }, { execution: {} }],
    ['_meta', { _meta: [] }, {}],
  ])('loses members that clients cannot read: %s', (_, given, mended) =>
    expect(mendedTool(given)).toEqual(tool(mended)),
  );

  it('gets its address as a missing name, and arguments that clients can read', () => {
    expect(mendItem('resources', { uri: 'a://1', size: '7', annotations: { priority: 2, audience: ['you'] } })).toEqual(
      {
        item: { uri: 'a://1', name: 'a://1', annotations: { audience: [] } },
        problems: [
          'annotations.audience[0] is not one of user, assistant',
          'annotations.priority is not a number from 0 to 1',
          'size is not a number',
          'name is missing',
        ],
      },
    );
    expect(mendItem('resourceTemplates', { uriTemplate: 'a://{x}', name: 5 }).item).toEqual({
      uriTemplate: 'a://{x}',
      name: 'a://{x}',
    });
    const given = { name: 'p', arguments: [{ name: 'a', required: 'yes' }, { description: 'x' }, 'b'], title: null };
    expect(mendItem('prompts', given as never).item).toEqual({ name: 'p', arguments: [{ name: 'a' }] });
    expect(mendItem('prompts', { name: 'p', arguments: {} }).item).toEqual({ name: 'p' });
  });

  it.each(['2026-02-30T10:00:00Z', '2026-01-01T10:00:00', '2026-01-01', 'yesterday', '2026-01-01T25:00:00Z'])(
    'drops the invalid time %s',
    (lastModified) => {
      const { item } = mendItem('resources', { uri: 'a://1', name: 'a', annotations: { lastModified } });
      expect(item).toEqual({ uri: 'a://1', name: 'a', annotations: {} });
    },
  );

  it('is readable for clients of the 2025 era or dropped, for any item of its server', () => {
    const members = ['title', 'description', 'annotations', 'icons', '_meta', 'arguments', 'size', 'mimeType'];
    const nested = ['type', 'properties', 'required', 'src', 'readOnlyHint', 'priority', 'lastModified', 'taskSupport'];
    const value = fc.oneof(
      fc.constantFrom<Json>(null, true, 7, 'x', 'object', [], {}, ['object'], '2026-01-01T00:00:00Z'),
      fc.dictionary(fc.constantFrom(...nested, 'a'), fc.jsonValue({ maxDepth: 2 })),
      fc.array(fc.dictionary(fc.constantFrom('src', 'name', 'sizes', 'required'), fc.jsonValue({ maxDepth: 1 }))),
    );
    const item = fc.dictionary(fc.constantFrom(...members, 'inputSchema', 'outputSchema', 'execution', 'name'), value);
    const list = fc.constantFrom<ItemList>('tools', 'resources', 'resourceTemplates', 'prompts');
    const property = fc.property(list, item, (kind, more) => {
      const given = { name: 'n', uri: 'a://1', uriTemplate: 'a://{x}', inputSchema: { type: 'object' }, ...more };
      const mended = mendItem(kind, given);
      expect(mended.item === undefined || isReadable(kind, mended.item)).toBe(true);
      expect(mended.problems.length > 0 || mended.item !== undefined).toBe(true);
    });
    fc.assert(property, { numRuns: 500 });
  });

  it.each<[string, object, RegExp]>([
    ['an unknown type', { properties: { a: { type: 'nonsense' } } }, /not a valid/],
    ['a reference to nothing', { properties: { a: { $ref: '#/$defs/none' } } }, /refers to/],
    ['a reference elsewhere', { $ref: 'https://elsewhere.example/a.json' }, /refers to/],
    ['a pattern that is invalid', { properties: { a: { pattern: '(' } } }, /pattern/],
    ['a pattern with an unknown Unicode class', { properties: { a: { pattern: '\\p{Nope}' } } }, /pattern/],
    ['a pattern with a class in a range', { properties: { a: { pattern: '[\\p{L}-z]' } } }, /pattern/],
    ['a pattern with a class after a backslash', { properties: { a: { pattern: '\\\\p{L}' } } }, /pattern/],
    ['a pattern of names that is invalid', { patternProperties: { '[': {} } }, /pattern/],
  ])('has an output schema that clients do not compile: %s', (_, more, fault) =>
    expect(outputFault(tool({ outputSchema: { type: 'object', ...more } }))).toMatch(fault),
  );

  it.each<[string, object]>([
    [
      'references into itself',
      { $defs: { a: { $anchor: 'here' } }, allOf: [{ $ref: '#/$defs/a' }, { $ref: '#here' }] },
    ],
    [
      'a nested id',
      { $id: 'https://a.example/s', allOf: [{ $ref: 'https://a.example/s#/$defs/a' }], $defs: { a: {} } },
    ],
    ['data that looks like a schema', { properties: { a: { const: { $ref: 'b' } } } }],
    [
      'another dialect',
      { $schema: 'http://json-schema.org/draft-04/schema#', properties: { a: { type: 'nonsense' } } },
    ],
    ['Unicode classes', { properties: { a: { pattern: '^[\\p{L}\\P{Script=Han}]+\\p{Lu}$' } } }],
    ['look-around', { properties: { a: { pattern: '^(?=a)' } } }],
  ])('has an output schema that clients compile: %s', (_, more) =>
    expect(outputFault(tool({ outputSchema: { type: 'object', ...more } }))).toBeUndefined(),
  );
});
