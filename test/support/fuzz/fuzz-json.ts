import type { Random } from './random.js';

/** The parts of JSON Schema that the API description uses. */
export interface Schema {
  type?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  enum?: unknown[];
  oneOf?: Schema[];
  anyOf?: Schema[];
  minimum?: number;
  format?: string;
}

/** Strings that often break programs: injections, unusual spellings, long texts. */
export const hostileTexts = [
  '',
  ' ',
  '\u0000',
  'a\u0000b',
  '\ud800',
  'x\udfff',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  "' or '1'='1",
  `'; drop table agent_cards; --`,
  '%',
  '_%_',
  '\\',
  '${jndi:ldap://x}',
  '{{7*7}}',
  '../../etc/passwd',
  '..%2f..%2f',
  'null',
  'NaN',
  '-1',
  '1e400',
  '0x10',
  '9'.repeat(400),
  'a'.repeat(300),
  'é\u0301\u202e',
  '😀'.repeat(50),
  '\r\nX-Evil: 1',
  '<script>',
  'eyJhbGciOiJub25lIn0.e30.',
  'W10.AAAAAAAAAAAAAAAAAAAAAA',
  '00000000-0000-0000-0000-000000000000',
  'User::"a" in Group::"b"',
  'javascript:alert(1)',
  'http://169.254.169.254/latest/meta-data',
] as const;

/** Values of every type that fields rarely expect. */
export const hostileValues: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  1e308,
  2 ** 53 + 2,
  [],
  {},
  [[[[]]]],
  { toString: 1 },
  { then: 'x' },
  ...hostileTexts,
];

/** Generates a value that fits the schema. */
export function sample(schema: Schema, random: Random): unknown {
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) return sample(random.pick(choices), random);
  if (schema.enum) return random.pick(schema.enum);
  switch (schema.type) {
    case 'object':
      return Object.fromEntries(
        Object.entries(schema.properties ?? {})
          .filter(([name]) => schema.required?.includes(name) || random.chance(0.5))
          .map(([name, property]) => [name, sample(property, random)]),
      );
    case 'array':
      return schema.items ? [sample(schema.items, random)] : [];
    case 'integer':
    case 'number':
      return schema.minimum ?? 1;
    case 'boolean':
      return random.chance(0.5);
    case undefined:
    default:
      return schema.format === 'uri' ? 'http://127.0.0.1:9/' : 'fuzz';
  }
}

/** Corrupts one place in a value: a member is replaced, dropped, doubled or nested. */
export function disturb(value: unknown, random: Random): unknown {
  if (Array.isArray(value)) return random.pick([[], [...value, ...value], [random.pick(hostileValues)], value[0]]);
  if (typeof value !== 'object' || value === null) return random.pick(hostileValues);
  const entries = Object.entries(value);
  const at = random.whole(entries.length);
  const chosen = entries[at];
  if (!chosen) return random.pick(hostileValues);
  switch (random.whole(4)) {
    case 0:
      entries.splice(at, 1);
      break;
    case 1:
      chosen[1] = disturb(chosen[1], random);
      break;
    case 2:
      entries.push([random.pick(hostileTexts), chosen[1]]);
      break;
    default:
      chosen[1] = random.pick(hostileValues);
  }
  return Object.fromEntries(entries);
}

const deep = (open: string, close: string, depth: number): string => open.repeat(depth) + close.repeat(depth);

/** Invalid bodies for every door. None of them is a valid request of any door. */
export const poisons: readonly (() => Buffer)[] = [
  ...[
    '',
    ' ',
    'null',
    'true',
    '"text"',
    '[]',
    '[1,"a",null]',
    '{',
    '{"a":1',
    '{"a":1}}',
    "{'a':1}",
    '{"a":undefined}',
    '{"a":NaN}',
    '{"fuzz":1e400}',
    '{"fuzz":-1e400}',
    `{"fuzz":${'9'.repeat(5_000)}}`,
    '{"fuzz":1,"fuzz":2}',
    '{"__proto__":{"polluted":true},"fuzz":1}',
    '{"constructor":{"prototype":{"polluted":true}},"fuzz":1}',
    '{"\\u005f_proto__":{"polluted":true},"fuzz":1}',
    '{"fuzz":"\\u0000"}',
    '{"fuzz":"\\ud800"}',
    '{"\\udfff":1}',
    '{"fuzz":"\\x"}',
    '/* */{"fuzz":1}',
    'fuzz=1&__proto__[polluted]=true',
    '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--',
    '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
    `{"fuzz":${deep('[', ']', 65)}}`,
    `{"fuzz":${deep('[', ']', 100_000)}}`,
    deep('{"a":', '}', 100_000).replace('"a":}', '"a":1}'),
    '['.repeat(100_000),
    `{${Array.from({ length: 20_000 }, (_, index) => `"k${index}":${index}`).join(',')}}`,
    `{"fuzz":"${'a'.repeat(900_000)}"}`,
  ].map((text) => () => Buffer.from(text)),
  () => Buffer.from('\ufeff{"fuzz":1}'),
  () => Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('{"fuzz":1}', 'utf16le')]),
  () => Buffer.from('{"fuzz":1}', 'utf16le').swap16(),
  () => Buffer.from('{"fuzz":"é"}', 'latin1'),
  () => Buffer.from([...Buffer.from('{"fuzz":"'), 0xed, 0xa0, 0x80, ...Buffer.from('"}')]),
  () => Buffer.from([...Buffer.from('{"fuzz":"'), 0xc0, 0x80, 0xf8, 0x88, ...Buffer.from('"}')]),
  () => Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]),
  () => Buffer.alloc(2_000, 0),
];

/** Bodies of ten megabytes. They are in a separate list so that a run has few of them. */
export const hugePoisons: readonly (() => Buffer)[] = [
  () => Buffer.concat([Buffer.from('{"fuzz":"'), Buffer.alloc(10 * 1_048_576, 'a'), Buffer.from('"}')]),
  () => Buffer.alloc(10 * 1_048_576, '['),
  () =>
    Buffer.concat([
      Buffer.from('{"jsonrpc":"2.0","id":1,"method":"'),
      Buffer.alloc(10 * 1_048_576, 'm'),
      Buffer.from('"}'),
    ]),
];

/** Changes, drops or inserts a few bytes. */
export function scramble(bytes: Buffer, random: Random): Buffer {
  const scrambled = [...bytes];
  for (let left = 1 + random.whole(4); left > 0 && scrambled.length > 0; left--) {
    const at = random.whole(scrambled.length);
    const dropped = random.chance(0.7) ? 1 : 0;
    scrambled.splice(at, dropped, ...(random.chance(0.8) ? [random.whole(256)] : []));
  }
  return Buffer.from(scrambled);
}
