import { Ajv, type Options, type ValidateFunction } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { RE2JS } from 're2js';
import type { Json, JsonObject } from '../../../kernel/json.js';

const engines = { '2020-12': Ajv2020, '2019-09': Ajv2019, 'draft-07': Ajv } as const;
type Dialect = keyof typeof engines;

const dialects = new Map<Json | undefined, Dialect>([
  [undefined, '2020-12'],
  ['https://json-schema.org/draft/2020-12/schema', '2020-12'],
  ['https://json-schema.org/draft/2019-09/schema', '2019-09'],
  ['http://json-schema.org/draft-07/schema', 'draft-07'],
  ['https://json-schema.org/draft-07/schema', 'draft-07'],
]);
const maxPatternLength = 1_000;
// Escapes and character classes, which stand for one character. `\1` is a back-reference, `\12` an octal escape.
const oneCharacter = /\\(?:[^1-7]|[1-7][0-7])|\[\^?(?:\\[^]|\[:\w+:\]|[^\]\\])*(\])?/g;
// After the replacement: an unclosed class, a back-reference, a look-around, or a repetition with nothing before it.
const refused = /[[\\]|\(\?<?[=!]|(?:^|\|)[*+?]|\([*+]/;
const metaCheckers = new Map<Dialect, Ajv>();

/**
 * Returns the check of a schema against the meta-schema of its own dialect; undefined when `$schema` is not supported.
 * An absent `$schema` means 2020-12, the dialect that MCP assumes. The check is already compiled.
 */
export function metaCheck($schema: Json | undefined): ((schema: JsonObject) => boolean) | undefined {
  const dialect = dialectOf($schema);
  if (!dialect) return undefined;
  let checker = metaCheckers.get(dialect);
  if (!checker) {
    checker = new engines[dialect]({ ...options(false), meta: true });
    void checker.validateSchema({});
    metaCheckers.set(dialect, checker);
  }
  const check = checker;
  return (schema) => check.validateSchema(bare(schema)) === true;
}

/**
 * Compiles a schema that is known to be valid. Throws for an unresolved reference and for a pattern that RE2 does not
 * support.
 */
export function compileWith(schema: JsonObject, { allErrors }: { allErrors: boolean }): ValidateFunction {
  const engine = engines[dialectOf(schema.$schema) ?? '2020-12'];
  return new engine({ ...options(allErrors), meta: false }).compile(bare(schema));
}

function dialectOf($schema: Json | undefined): Dialect | undefined {
  return dialects.get(typeof $schema === 'string' ? $schema.replace(/#$/, '') : $schema);
}

/** Removes `$schema`, which has already selected the engine, and ajv's own `$async`, which would return a promise. */
function bare(schema: JsonObject): object {
  return { ...schema, $schema: undefined, $async: undefined };
}

/**
 * Options for a new engine. Each schema has its own engine, so that its ids are separate and both are garbage-collected
 * together.
 */
function options(allErrors: boolean): Options {
  return {
    allErrors,
    strict: false,
    validateSchema: false,
    ownProperties: true,
    inlineRefs: false, // inlining doubles the compiled code with each reference of a chain
    logger: false, // an unknown format is an annotation and needs no log line
    formats,
    code: { regExp: linearRegExp },
  };
}

/**
 * Compiles a pattern with RE2 (ECMA-262 syntax translated): no backtracking, so no look-around and no back-references.
 */
function linearRegExp(pattern: string): { test(text: string): boolean; toString(): string } {
  if (pattern.length > maxPatternLength) throw new Error('a pattern is too long');
  const regExp = compilePattern(pattern);
  return { test: (text) => regExp.test(text), toString: () => JSON.stringify(pattern) };
}
linearRegExp.code = 'linearRegExp';

/**
 * True for a pattern that RE2 is known to refuse: one that is too long, has a look-around or a back-reference, or is no
 * regular expression. Compiling a pattern can take milliseconds, this takes microseconds; but it does not find every
 * fault. Pure.
 */
export function isRefusedPattern(pattern: string): boolean {
  if (pattern.length > maxPatternLength) return true;
  if (pattern.includes('\\Q')) return false; // quotes everything up to \E
  const bare = pattern.replace(oneCharacter, (found, end) => (found.startsWith('[') && end === undefined ? '[' : 'x'));
  return refused.test(bare) || !isBalanced(bare);
}

function isBalanced(text: string): boolean {
  let depth = 0;
  for (const character of text) {
    if (character === '(') depth++;
    else if (character === ')' && --depth < 0) return false;
  }
  return depth === 0;
}

function compilePattern(pattern: string): RE2JS {
  try {
    return RE2JS.compile(RE2JS.translateRegExp(pattern));
  } catch {
    throw new Error(`a pattern cannot be checked in linear time: ${pattern.slice(0, 100)}`);
  }
}

/** The formats that are checked, each in linear time; all others are annotations. */
const formats = {
  date: (text: string) => /^\d{4}-\d\d-\d\d$/.test(text) && isDate(text),
  'date-time': (text: string) =>
    /^\d{4}-\d\d-\d\d[Tt ]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d{1,9})?([Zz]|[+-]\d\d:?\d\d)$/.test(text) &&
    isDate(text.slice(0, 10)),
  uuid: /^(?:urn:uuid:)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i,
  uri: (text: string) => text.length <= 8_192 && /^[a-z][a-z0-9+.-]*:/i.test(text) && !/\s/.test(text),
  email: (text: string) => text.length <= 320 && /^[^\s@]+@[^\s@]+$/.test(text),
  ipv4: /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.|$)){4}$/,
};

function isDate(text: string): boolean {
  const time = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}
