import { atOnce, someInside, storableText, type Json } from '../kernel/json.js';
import { trimEnd } from '../kernel/text.js';
import { restoring, shielded, shielding } from './exact-integers.js';
import {
  endOfText,
  endOfLongText,
  endOfShortText,
  isDigit,
  isPartOfNumber,
  letterE,
  quote,
  ScanPauses,
  testing,
} from './json-scan.js';
import { parsing } from './json-pieces.js';

export type ParsedJson = { ok: true; value: Json } | { ok: false; reason: string };

const maxJsonDepth = 64;
/** Limit for all values of a text, at every depth, because each value is visited more than once before it is stored. */
export const maxJsonValues = 100_000;
/**
 * Limit for the members of all large objects of a text. Such an object is a hash table in memory: each pass over it
 * takes several times as long as over small objects with as many members.
 */
export const maxJsonMembers = 20_000;
/** Members of a large object. */
export const largeObject = 1_000;
/** Limit for the integers of 17 digits or more: to write one takes a microsecond, twenty times as long as a double. */
const maxJsonLongIntegers = 10_000;
const minLongDigits = 17;

const notJson: ParsedJson = { ok: false, reason: 'not JSON' };

/** Limits that replace the defaults. */
export interface JsonLimits {
  /** Levels of nesting. */
  readonly maxDepth?: number;
  /** Values at all levels. */
  readonly maxValues?: number;
  /** Members of all objects with 1,000 members or more. */
  readonly maxMembers?: number;
  /** Integers of 17 digits or more. */
  readonly maxLongIntegers?: number;
}

/**
 * Parses JSON text from outside. A byte order mark is skipped (RFC 8259 section 8.1). Integers that a double would
 * change become bigints. Refuses text above the limits (a scan checks these first, so depth cannot overflow the stack),
 * and numbers outside the range of a double. Members named `__proto__` are dropped, so that no later copy of the value
 * can set a prototype. Never throws; the reason never quotes the text.
 */
export function parseJson(source: string, limits: JsonLimits = {}): ParsedJson {
  const text = withoutMark(source);
  const tooMuch = atOnce(beyondLimits(text, limits));
  if (tooMuch) return { ok: false, reason: tooMuch };
  const safe = shielded(text);
  let value: Json;
  try {
    value = JSON.parse(safe) as Json;
  } catch {
    return notJson;
  }
  return atOnce(checking(text, value, safe !== text));
}

/** Does the same with pauses, for long text. */
export function* parsingJson(source: string, limits: JsonLimits = {}): Generator<void, ParsedJson> {
  const text = withoutMark(source);
  const tooMuch = yield* beyondLimits(text, limits);
  if (tooMuch) return { ok: false, reason: tooMuch };
  const safe = yield* shielding(text);
  let value: Json;
  try {
    value = yield* parsing(safe);
  } catch {
    return notJson;
  }
  yield;
  return yield* checking(text, value, safe !== text);
}

function withoutMark(source: string): string {
  return source.charCodeAt(0) === 0xfeff ? source.slice(1) : source;
}

function* checking(text: string, value: Json, isShielded: boolean): Generator<void, ParsedJson> {
  const mayBeHuge = yield* testing(mayHoldHugeNumber, text, 200);
  if (mayBeHuge && (yield* someInside([value], isInfinite))) return { ok: false, reason: 'a number is out of range' };
  if (yield* testing(mayHoldProto, text, 9)) yield* someInside([value], dropProto);
  return { ok: true, value: isShielded ? yield* restoring(value) : value };
}

/** The description of a violation by a value that cannot be stored. */
export const unstorable = 'must not contain NUL or lone surrogates';

/** True when a text in the value (a key too) has a NUL or a lone surrogate, which PostgreSQL cannot store. */
export function containsUnstorable(value: unknown): boolean {
  const stack: object[] = [];
  // Every request is checked, so only objects go over the stack.
  const isRefused = (inner: unknown): boolean => {
    if (typeof inner === 'object' && inner !== null) stack.push(inner);
    return typeof inner === 'string' && isUnstorable(inner);
  };
  if (isRefused(value)) return true;
  while (stack.length > 0) {
    const item = stack.pop()!;
    if (Array.isArray(item)) {
      for (const inner of item as unknown[]) if (isRefused(inner)) return true;
    } else {
      // For an object of thousands of members, Object.values takes several times as long.
      for (const name of Object.keys(item))
        if (isUnstorable(name) || isRefused((item as Record<string, unknown>)[name])) return true;
    }
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
// A double overflows at 1e309: three digits of exponent, or a very long mantissa. The digits before it are excluded,
// because a search from each digit of each number would take quadratic time.
const mayHoldHugeNumber = /[eE]\+?\d{3}|(?<!\d)\d{200}/;

/** True for text that PostgreSQL cannot store: with a NUL or a lone surrogate. */
export function isUnstorable(text: string): boolean {
  return text.includes('\u0000') || !text.isWellFormed();
}

function isInfinite(item: unknown): boolean {
  return item === Infinity || item === -Infinity;
}

function dropProto(item: unknown): boolean {
  if (typeof item === 'object' && item !== null) delete (item as Record<string, unknown>)['__proto__'];
  return false;
}

const colon = 0x3a;
const comma = 0x2c;
const point = 0x2e;

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
export function* beyondLimits(text: string, limits: JsonLimits): Generator<void, string | undefined> {
  const { maxDepth = maxJsonDepth, maxValues = maxJsonValues } = limits;
  const { maxMembers = maxJsonMembers, maxLongIntegers = maxJsonLongIntegers } = limits;
  const members: number[] = [0];
  let inLargeObjects = 0;
  let longIntegers = 0;
  let depth = 0;
  let values = 1;
  const pauses = new ScanPauses();
  for (let index = 0; index < text.length; index++) {
    if (pauses.isDue(index)) yield;
    const code = text.charCodeAt(index);
    if (code === quote) index = endOfShortText(text, index) ?? (yield* endOfLongText(text, index, pauses));
    else if (isDigit(code)) {
      const start = index;
      while (isDigit(text.charCodeAt(index + 1))) if (pauses.isDue(++index)) yield;
      const isLong = index - start >= minLongDigits - 1 && text.charCodeAt(start - 1) !== point;
      if (isLong && ++longIntegers > maxLongIntegers)
        return `more than ${maxLongIntegers} integers of ${minLongDigits} digits or more`;
    } else if (code === comma) {
      if (++values > maxValues) return `more than ${maxValues} values`;
    } else if (code === colon) {
      const count = ++members[depth]!;
      if (count >= largeObject) inLargeObjects += count === largeObject ? count : 1;
      if (inLargeObjects > maxMembers) return `more than ${maxMembers} members in objects of ${largeObject} or more`;
    } else if (code === 0x7b || code === 0x5b) {
      if (++depth > maxDepth) return `nested deeper than ${maxDepth}`;
      members[depth] = 0;
    } else if ((code === 0x7d || code === 0x5d) && depth > 0) depth--;
  }
  return undefined;
}
