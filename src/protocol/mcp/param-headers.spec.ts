import { headersFor, paramHeadersOf, wrongHeader } from './param-headers.js';

const region = { type: 'string', 'x-mcp-header': 'Region' };
const schemaOf = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more }) as never;
const headers = paramHeadersOf(
  schemaOf({
    region,
    count: { type: 'integer', 'x-mcp-header': 'Count' },
    isDry: { type: 'boolean', 'x-mcp-header': 'Dry' },
    where: { type: 'object', properties: { zone: { type: 'string', 'x-mcp-header': 'Zone' } } },
    plain: { type: 'string' },
  }),
);

describe('headers that repeat arguments', () => {
  it.each<[unknown, string | undefined]>([
    ['eu west', 'eu west'],
    ['', '=?base64??='],
    [' eu', '=?base64?IGV1?='],
    ['Zürich', '=?base64?WsO8cmljaA==?='],
    ['a\r\nX-Evil: 1', '=?base64?YQ0KWC1FdmlsOiAx?='],
    ['=?base64?eA==?=', '=?base64?PT9iYXNlNjQ/ZUE9PT89?='],
    ['=?base64?=', '=?base64?PT9iYXNlNjQ/PQ==?='],
    [42, '42'],
    [2 ** 60, undefined],
    [Infinity, undefined],
    [false, 'false'],
    [null, undefined],
    [['eu'], undefined],
  ])('%j is written as %j, and read back', (value, text) => {
    const args = { region: value } as never;
    expect(headersFor(headers, args)).toEqual(text === undefined ? {} : { 'Mcp-Param-Region': text });
    expect(wrongHeader(headers, args, text === undefined ? {} : { 'mcp-param-region': text })).toBeUndefined();
  });

  it('belong to properties at any depth, and only to those', () => {
    const args = { count: 1, isDry: true, where: { zone: 'a' }, plain: 'x' };
    expect(headersFor(headers, args)).toEqual({
      'Mcp-Param-Count': '1',
      'Mcp-Param-Dry': 'true',
      'Mcp-Param-Zone': 'a',
    });
    const inherited = paramHeadersOf(schemaOf({ constructor: { ...region, properties: { name: region } } }));
    expect(headersFor(inherited, {})).toEqual({});
  });

  it.each<[string, object, Record<string, string | string[]>, string]>([
    ['is not there', { region: 'eu' }, {}, 'is missing'],
    ['differs', { region: 'eu' }, { 'mcp-param-region': 'us' }, 'differs from the argument'],
    ['is of another type', { count: 1 }, { 'mcp-param-count': 'one' }, 'differs from the argument'],
    ['is not Base64', { region: 'eu' }, { 'mcp-param-region': '=?base64?e?=' }, 'is not valid Base64'],
    ['is not UTF-8', { region: 'eu' }, { 'mcp-param-region': '=?base64?/w==?=' }, 'is not valid Base64'],
  ])('are wrong when one %s', (_, args, sent, problem) => {
    expect(wrongHeader(headers, args as never, sent)).toMatchObject({ problem });
  });

  it('are compared as numbers for number arguments, and may be sent for absent arguments', () => {
    expect(wrongHeader(headers, { count: 42 }, { 'mcp-param-count': '42.0' })).toBeUndefined();
    expect(wrongHeader(headers, {}, { 'mcp-param-region': 'eu' })).toBeUndefined();
  });

  it.each([
    ['does not belong to a property', schemaOf({ region }, { 'x-mcp-header': 'Root' })],
    ['is not a token', schemaOf({ region, other: { type: 'string', 'x-mcp-header': 'a: b' } })],
    ['belongs to an object', schemaOf({ region, other: { type: 'object', 'x-mcp-header': 'Other' } })],
    ['exists twice', schemaOf({ region, other: { type: 'string', 'x-mcp-header': 'REGION' } })],
    [
      'belongs to an item',
      schemaOf({ region, list: { type: 'array', items: { type: 'string', 'x-mcp-header': 'Item' } } }),
    ],
    ['is in a branch', schemaOf({ region }, { anyOf: [schemaOf({ other: region })] })],
    ['is in a definition', schemaOf({ region }, { $defs: { other: region } })],
  ])('an annotation that %s makes all of them invalid', (_, schema) => {
    expect(paramHeadersOf(schema)).toEqual([]);
  });

  it('ignore an annotation outside of schemas', () => {
    const odd = schemaOf({ region: { ...region, default: { 'x-mcp-header': 'x' } } }, { examples: [region] });
    expect(paramHeadersOf(odd)).toHaveLength(1);
    expect([undefined, null, 'text', {}, { properties: 7 }].map((schema) => paramHeadersOf(schema as never))).toEqual(
      Array(5).fill([]),
    );
  });
});
