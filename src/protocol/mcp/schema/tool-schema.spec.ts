import { Script } from 'node:vm';
import fc from 'fast-check';
import type { Json } from '../../../kernel/json.js';
import { compileToolSchema, listedSchema, skillSchema } from './tool-schema.js';

/** Returns the violated fields of the arguments. Throws when the schema itself is refused. */
function check(schema: Json | undefined, args: unknown): string[] {
  const compiled = compileToolSchema(schema);
  if (!compiled.ok) throw new Error(compiled.reason);
  return compiled.validate(args).map(({ field, description }) => `${field} ${description}`);
}
const reasonOf = (schema: Json): string => {
  const compiled = compileToolSchema(schema);
  return compiled.ok ? 'accepted' : compiled.reason;
};
const properties = (name: string, schema: Json): Json => ({ type: 'object', properties: { [name]: schema } });
const nested = (depth: number): Json => (depth === 0 ? {} : { next: nested(depth - 1) });

describe('compileToolSchema', () => {
  it('RE-12 finds what breaks the schema', () => {
    const schema = {
      type: 'object',
      required: ['projectId'],
      properties: { projectId: { type: 'string' }, count: { type: 'integer', minimum: 1 } },
      additionalProperties: false,
    };
    expect(check(schema, { projectId: 'p', count: 1 })).toEqual([]);
    expect(check(schema, { count: 0, more: 1 })).toEqual([
      " must have required property 'projectId'",
      ' must NOT have additional properties: more',
      '/count must be >= 1',
    ]);
    expect(check(schema, [])).toEqual([' must be object']);
    expect(check(schema, 'text')).toEqual([' must be object']);
  });

  it('RE-13 accepts any object when there is no schema', () => {
    for (const schema of [undefined, null, true, {}]) expect(check(schema, { any: [1] })).toEqual([]);
  });

  it.each([
    ['https://json-schema.org/draft/2020-12/schema', { prefixItems: [{ type: 'string' }] }],
    ['https://json-schema.org/draft/2019-09/schema', { items: [{ type: 'string' }] }],
    ['http://json-schema.org/draft-07/schema#', { items: [{ type: 'string' }] }],
  ])('reads %s', ($schema, list) => {
    const schema = { $schema, ...(properties('a', list) as object) };
    expect(check(schema, { a: ['x'] })).toEqual([]);
    expect(check(schema, { a: [1] })).toEqual(['/a/0 must be string']);
  });

  it.each<[string, Json, RegExp]>([
    ['an unknown dialect', { $schema: 'http://json-schema.org/draft-04/schema#' }, /unknown \$schema/],
    ['a $schema that is not a string', { $schema: { a: 1 } }, /unknown \$schema/],
    ['another type at the top', { type: 'array' }, /an object/],
    ['a boolean', false, /JSON object/],
    ['text', 'object', /JSON object/],
    ['an invalid schema', { type: 'object', properties: 5 }, /not a valid/],
    ['an unknown type', properties('a', { type: 'any' }), /not a valid/],
    ['a remote reference', properties('a', { $ref: 'http://127.0.0.1:9/x.json' }), /reference/],
    ['a missing reference', properties('a', { $ref: '#/$defs/none' }), /reference/],
    ['look-ahead', properties('a', { pattern: '(?=x)y' }), /linear time/],
    ['a back-reference', properties('a', { pattern: '(a)\\1' }), /linear time/],
    ['look-ahead in patternProperties', { type: 'object', patternProperties: { '(?!x)y': {} } }, /linear time/],
    ['a schema over 64 KiB', properties('a', { description: 'x'.repeat(66_000) }), /larger/],
    ['a lone surrogate', properties('a', { description: '\ud800' }), /surrogate/],
  ])('refuses %s', (_name, schema, reason) => expect(reasonOf(schema)).toMatch(reason));

  it('refuses depth without a stack overflow', () => {
    expect(reasonOf(nested(100))).toMatch(/deeper/);
    let deep: Json = {};
    for (let depth = 0; depth < 100_000; depth++) deep = { not: deep };
    expect(reasonOf(deep)).toMatch(/deeper/);
  });

  it('abuse 32: hostile patterns run in linear time', () => {
    const schema = {
      type: 'object',
      properties: { a: { pattern: '^(a+)+$' } },
      patternProperties: { '^(b+)+$': false },
    };
    const hostile = { a: `${'a'.repeat(5_000)}!`, [`${'b'.repeat(5_000)}!`]: 1 };
    expect(check(schema, hostile)).toEqual(['/a must match pattern "^(a+)+$"']);
    expect(check(schema, { a: 'aaa' })).toEqual([]);
    expect(check(properties('a', { pattern: '^\\d{3}-[A-Z]\\u0041$' }), { a: '123-BA' })).toEqual([]);
  });

  it('abuse 32: exponential schemas are stopped', () => {
    const $defs: Json = Object.fromEntries(
      Array.from({ length: 40 }, (_, level): [string, Json] => [
        `d${level}`,
        level === 39 ? { const: 1 } : { anyOf: [{ $ref: `#/$defs/d${level + 1}` }, { $ref: `#/$defs/d${level + 1}` }] },
      ]),
    );
    expect(check({ $defs, ...(properties('a', { $ref: '#/$defs/d0' }) as object) }, { a: 2 })).toEqual([
      ' could not be checked in time',
    ]);
    const twice = { properties: { next: { $ref: '#' } }, required: ['next'] };
    expect(check({ type: 'object', anyOf: [twice, twice] }, nested(40))).toEqual([' could not be checked in time']);
  });

  it('abuse 32: references to itself, huge enums and quadratic keywords are stopped', () => {
    expect(reasonOf({ type: 'object', allOf: [{ $ref: '#' }] })).toBe('accepted');
    expect(check({ type: 'object', allOf: [{ $ref: '#' }] }, {})).toEqual([' could not be checked in time']);
    const items = Array.from({ length: 60_000 }, (_, index) => [index]);
    expect(check(properties('a', { uniqueItems: true }), { a: items })).toEqual([' could not be checked in time']);
    const many = Array.from({ length: 8_000 }, (_, index) => [index]);
    expect(reasonOf(properties('a', { enum: many }))).toBe('accepted');
    expect(check(properties('ok', { type: 'string' }), { ok: 'still works' })).toEqual([]);
  });

  /** Runs work and counts how often it compiled or checked something under a deadline, and with which timeouts. */
  const deadlines = (work: () => void): number[] => {
    const seen: number[] = [];
    const run = jest.spyOn(Script.prototype, 'runInContext');
    try {
      work();
      seen.push(...run.mock.calls.map(([, options]) => (options as { timeout: number }).timeout));
    } finally {
      run.mockRestore();
    }
    return seen;
  };

  it('abuse 32: both compilations run against a deadline', () => {
    const schema = properties('deadlines', { type: 'string', minLength: 1 });
    expect(deadlines(() => check(schema, { deadlines: 1 }))).toEqual([250, 250]);
    expect(deadlines(() => check(schema, { deadlines: 1 }))).toEqual([]);
  });

  /**
   * A clock that stands still until a test moves it; each read of the processor time adds a second, so all work exceeds
   * its limit.
   */
  const slowTime = () => {
    const time = { now: 0, worked: 0, elapsed: () => time.now, workedMs: () => (time.worked += 1_000) };
    return time;
  };

  it('abuse 32: a schema that ran out of time refuses such arguments at once for a minute, other arguments too', () => {
    const time = slowTime();
    const twice = { properties: { next: { $ref: '#' } }, required: ['next'] };
    const compiled = compileToolSchema({ type: 'object', title: 'rest', anyOf: [twice, twice] }, time);
    if (!compiled.ok) throw new Error(compiled.reason);
    const late = [{ field: '', description: 'could not be checked in time' }];
    const batch = (): void => {
      for (let call = 0; call < 20; call++) expect(compiled.validate(nested(40 + call))).toEqual(late);
    };
    expect(deadlines(batch)).toEqual([25]);
    time.now = 59_999;
    expect(deadlines(batch)).toEqual([]);
    time.now = 60_000;
    expect(deadlines(batch)).toEqual([25]);
  });

  it('abuse 32: a schema that compiles too slowly is stopped, and refuses arguments until its pause is over', () => {
    const time = slowTime();
    const slow = Object.fromEntries(
      Array.from({ length: 900 }, (_, index) => [`p${index}`, { type: 'string', pattern: `^a{1,9}b${index}$` }]),
    );
    const call = (): void => {
      const compiled = compileToolSchema({ type: 'object', properties: slow }, time);
      expect(compiled.ok && compiled.validate({ p1: 1 })).toMatchObject([
        { description: expect.stringMatching(/in time/) },
      ]);
    };
    expect(deadlines(() => [1, 2, 3].forEach(call))).toEqual([250]);
    time.now = 60_000;
    expect(deadlines(call)).toEqual([250]);
  });

  it('a machine that gives its time to other processes blocks no schema', () => {
    const real = Script.prototype.runInContext.bind(new Script('work()'));
    const run = jest.spyOn(Script.prototype, 'runInContext');
    const stalled = (): never => {
      throw Object.assign(new Error('late'), { code: 'ERR_SCRIPT_EXECUTION_TIMEOUT' });
    };
    try {
      run.mockImplementationOnce(stalled).mockImplementationOnce(stalled).mockImplementation(real);
      const compiled = compileToolSchema(properties('stalled', { type: 'string' }), {
        elapsed: () => 0,
        workedMs: () => 0,
      });
      expect(compiled.ok && compiled.validate({ stalled: 'x' })).toEqual([]);
      expect(run).toHaveBeenCalledTimes(3);
    } finally {
      run.mockRestore();
    }
  });

  it('accepts recursive schemas, because most of them are harmless', () => {
    const tree = {
      type: 'object',
      properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#' } } },
    };
    expect(check(tree, { name: 'a', children: [{ name: 'b', children: [] }] })).toEqual([]);
    expect(check(tree, { children: [{ children: [{ name: 1 }] }] })).toEqual([
      '/children/0/children/0/name must be string',
    ]);
  });

  it('limits the number of violations for large arguments', () => {
    const schema = properties('a', { type: 'array', items: { type: 'string' } });
    expect(check(schema, { a: Array(100).fill(1) })).toHaveLength(20);
    expect(check(schema, { a: Array(100_000).fill(1) })).toHaveLength(1);
    expect(check(schema, { a: Array(100_000).fill('x') })).toEqual([]);
  });

  it('checks only the formats that it knows', () => {
    const formats: [string, string, boolean][] = [
      ['date', '2026-02-28', true],
      ['date', '2026-02-30', false],
      ['date-time', '2026-02-28T10:00:00Z', true],
      ['date-time', '2026-02-28T25:00:00Z', false],
      ['uuid', '00000000-0000-7000-8000-000000000000', true],
      ['uuid', 'x', false],
      ['uri', 'https://example.com/a', true],
      ['uri', 'a b', false],
      ['email', 'a@b', true],
      ['email', 'ab', false],
      ['ipv4', '10.0.0.1', true],
      ['ipv4', '10.0.0.256', false],
      ['regex', '(', true],
      ['odd', 'x', true],
    ];
    for (const [format, text, valid] of formats)
      expect([format, text, check(properties('a', { format }), { a: text }).length]).toEqual([
        format,
        text,
        valid ? 0 : 1,
      ]);
  });

  it('reads own members only, sets no defaults, and returns no promise', () => {
    expect(check({ type: 'object', required: ['constructor', 'toString'] }, {})).toHaveLength(2);
    const args = Object.freeze({ a: '1' });
    expect(check(properties('a', { type: 'number', default: 5 }), args)).toHaveLength(1);
    expect(check(JSON.parse('{"properties":{"__proto__":{"type":"object"}},"$async":true}') as Json, {})).toEqual([]);
    expect(check({ type: 'object', $async: true, required: ['a'] }, {})).toHaveLength(1);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it('caches compiled schemas by content, up to a limit', () => {
    const schema = (title: string): Json => ({ type: 'object', title });
    const first = compileToolSchema(schema('0'));
    expect(compileToolSchema({ title: '0', type: 'object' })).toBe(first);
    for (let index = 1; index <= 500; index++) compileToolSchema(schema(String(index)));
    expect(compileToolSchema(schema('0'))).not.toBe(first);
  });

  it('never throws', () => {
    fc.assert(
      fc.property(fc.json(), fc.json(), (schema, args) => {
        const compiled = compileToolSchema(JSON.parse(schema) as Json);
        expect(
          compiled.ok ? Array.isArray(compiled.validate(JSON.parse(args))) : typeof compiled.reason === 'string',
        ).toBe(true);
      }),
    );
  });
});

describe('listedSchema', () => {
  it('RE-11 RE-13 is the own schema of the skill, or any object', () => {
    const schema = { type: 'object', properties: { a: {} }, 'x-own': [1] };
    expect(listedSchema(schema)).toBe(schema);
    expect(listedSchema(undefined)).toEqual({ type: 'object', additionalProperties: true });
    expect(listedSchema({ properties: {} })).toEqual({ type: 'object', properties: {} });
  });
});

describe('the input schema of a skill as a tool', () => {
  it.each<[string, Json]>([
    ['another type', { type: 'array' }],
    ['a remote reference', { type: 'object', properties: { a: { $ref: 'https://elsewhere.example/s.json' } } }],
    ['a reference to nothing', { $ref: '#/definitions/none' }],
    ['an unknown type', { type: 'object', properties: { a: { type: 'strin' } } }],
    ['an unknown dialect', { $schema: 'http://json-schema.org/draft-04/schema#' }],
    ['look-around', { properties: { a: { pattern: '(?!a)' } } }],
    ['a boolean', false],
  ])('is absent when every call would be refused (E20): %s', (_, schema) => {
    const { schema: listed, refusal } = skillSchema(schema);
    expect([listed, typeof refusal]).toEqual([undefined, 'string']);
    expect(compileToolSchema(schema).ok).toBe(false);
  });

  it('is present when an empty list stands for no properties (C25)', () => {
    const { schema } = skillSchema({ type: 'object', properties: [], required: null });
    expect(schema).toEqual({ type: 'object', properties: {} });
    expect(compileToolSchema(schema).ok).toBe(true);
  });

  it('is present when the schema has nested ids (E20)', () => {
    const ids = { $id: 'https://a.example/a', properties: { a: { $id: 'b', $ref: '#/$defs/c', $defs: { c: {} } } } };
    expect(skillSchema(ids).refusal).toBeUndefined();
  });
});
