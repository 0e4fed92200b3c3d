import { storableText, type Json } from '../kernel/json.js';
import { trimEnd } from '../kernel/text.js';
import { restored, shielded } from './exact-integers.js';
import { endOfText, isPartOfNumber, letterE, quote } from './json-scan.js';

export type ParsedJson = { ok: true; value: Json } | { ok: false; reason: string };

const maxJsonDepth = 64;
/** Limit for all values of a text, at every depth, because each value is visited more than once before it is stored. */
const maxJsonValues = 100_000;
/**
 * Limit for the members of one object. Reading an object with more members blocks the event loop for too long, because
 * all its names are different.
 */
export const maxJsonMembers = 20_000;

/** Limits that replace the defaults. */
export interface JsonLimits {
  readonly maxDepth?: number;
  readonly maxValues?: number;
  readonly maxMembers?: number;
}

/**
 * Parses JSON text from outside. A byte order mark is skipped (RFC 8259 section 8.1). Integers that a double would
 * change become bigints. Refuses nesting deeper than `maxDepth`, objects with more than `maxMembers` members, more than
 * `maxValues` values in all (a scan checks these first, so depth cannot overflow the stack), and numbers outside the
 * range of a double. Members named `__proto__` are dropped, so that no later copy of the value can set a prototype.
 * Never throws; the reason never quotes the text.
 */
export function parseJson(source: string, limits: JsonLimits = {}): ParsedJson {
  const text = source.charCodeAt(0) === 0xfeff ? source.slice(1) : source;
  const tooMuch = beyondLimits(text, limits);
  if (tooMuch) return { ok: false, reason: tooMuch };
  let value: Json;
  const safe = shielded(text);
  try {
    value = JSON.parse(safe) as Json;
  } catch {
    return { ok: false, reason: 'not JSON' };
  }
  if (mayHoldHugeNumber.test(text) && some(value, (item) => item === Infinity || item === -Infinity)) {
    return { ok: false, reason: 'a number is out of range' };
  }
  if (mayHoldProto.test(text)) some(value, dropProto);
  return { ok: true, value: safe === text ? value : restored(value) };
}

/** The description of a violation by a value that cannot be stored. */
export const unstorable = 'must not contain NUL or lone surrogates';

/** True when a text in the value (a key too) has a NUL or a lone surrogate, which PostgreSQL cannot store. */
export function containsUnstorable(value: unknown): boolean {
  // Every request is checked, so texts do not go over the stack.
  const stack: object[] = [[value]];
  while (stack.length > 0) {
    const item = stack.pop()!;
    const isList = Array.isArray(item);
    for (const inner of isList ? (item as unknown[]) : Object.values(item as Record<string, unknown>)) {
      if (typeof inner === 'string' && isUnstorable(inner)) return true;
      if (typeof inner === 'object' && inner !== null) stack.push(inner);
    }
    if (!isList && Object.keys(item).some(isUnstorable)) return true;
  }
  return false;
}

/**
 * Returns the value in a form that PostgreSQL can store: in all texts and member names, U+FFFD replaces NUL and lone
 * surrogates.
 */
export function storableJson<Value>(value: Value): Value {
  return containsUnstorable(value) ? (withoutUnstorable(value) as Value) : value;
}

function withoutUnstorable(value: unknown): unknown {
  if (typeof value === 'string') return storableText(value, value.length);
  if (Array.isArray(value)) return value.map(withoutUnstorable);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [storableText(name, name.length), withoutUnstorable(inner)]),
  );
}

// The key itself, or an escape that may spell a part of it.
const mayHoldProto = /__proto__|\\u00/;
// A double overflows at 1e309: three digits of exponent, or a very long mantissa.
const mayHoldHugeNumber = /[eE]\+?\d{3}|\d{200}/;

/** True for text that PostgreSQL cannot store: with a NUL or a lone surrogate. */
export function isUnstorable(text: string): boolean {
  return text.includes('\u0000') || !text.isWellFormed();
}

function dropProto(item: unknown): boolean {
  if (typeof item === 'object' && item !== null) delete (item as Record<string, unknown>)['__proto__'];
  return false;
}

/**
 * Visits the value and everything in it until `test` returns true. It uses its own stack, so depth cannot overflow the
 * call stack.
 */
function some(value: unknown, test: (item: unknown) => boolean): boolean {
  const stack: unknown[] = [value];
  while (stack.length > 0) {
    const item = stack.pop();
    if (test(item)) return true;
    if (typeof item === 'object' && item !== null) for (const inner of Object.values(item)) stack.push(inner);
  }
  return false;
}

const colon = 0x3a;
const comma = 0x2c;

/**
 * True when a JSON text has a number that a double does not hold exactly. Readers then see another number than was
 * written, and one canonical form (RFC 8785) stands for several texts.
 */
export function holdsInexactNumber(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === quote) index = endOfText(text, index);
    else if (isPartOfNumber(code) && code !== letterE) {
      const start = index;
      while (isPartOfNumber(text.charCodeAt(index + 1))) index++;
      const token = text.slice(start, index + 1);
      if (decimal(token) !== decimal(String(Number(token)))) return true;
    }
  }
  return false;
}

/** Writes a JSON number as digits and a power of ten, the same for all its spellings. */
function decimal(token: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(token) ?? [];
  const digits = (whole + fraction).replace(/^0+/, '');
  const significant = trimEnd(digits, '0');
  if (significant === '') return '0';
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}

/** Says which limit a text exceeds; undefined when it exceeds none. */
function beyondLimits(
  text: string,
  { maxDepth = maxJsonDepth, maxValues = maxJsonValues, maxMembers = maxJsonMembers }: JsonLimits,
): string | undefined {
  const members = new Uint32Array(maxDepth + 1);
  let depth = 0;
  let values = 1;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === quote) index = endOfText(text, index);
    else if (code === comma) {
      if (++values > maxValues) return `more than ${maxValues} values`;
    } else if (code === colon) {
      if (++members[depth]! > maxMembers) return `an object has more than ${maxMembers} members`;
    } else if (code === 0x7b || code === 0x5b) {
      if (++depth > maxDepth) return `nested deeper than ${maxDepth}`;
      members[depth] = 0;
    } else if ((code === 0x7d || code === 0x5d) && depth > 0) depth--;
  }
  return undefined;
}
