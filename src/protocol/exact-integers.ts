import { randomBytes } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { atOnce, someInside } from '../kernel/json.js';
import {
  endOfLongText,
  endOfShortText,
  isBlank,
  isDigit,
  isPartOfNumber,
  minus,
  quote,
  ScanPauses,
  testing,
} from './json-scan.js';
import { parsing } from './json-pieces.js';

/*
 * Integers beyond 2^53 keep their digits (docs/decisions/0007): an integer that a double would change is a bigint in
 * memory, and JSON.stringify writes all its digits. JSON.parse cannot read such integers, so they are first replaced in
 * the text by strings with a random mark that code outside this process cannot know. These strings also carry integers
 * through libraries that parse JSON themselves.
 */

const mark = `integer-${randomBytes(12).toString('hex')}:`;
/**
 * Largest number of digits: as many as a double can have before its point. Longer numbers are out of range (as `1e400`
 * is).
 */
const maxDigits = 308;
/** A double holds every integer of 15 digits. */
const leastDigits = 16;
// The digits before it are excluded, because a search from each digit of each number would take sixteen times as long.
const mayHoldLongInteger = /(?<!\d)\d{16}/;

const rawJson = (JSON as { rawJSON?: (text: string) => unknown }).rawJSON ?? rawJsonOfNode20();

// Libraries write JSON too: the database driver, the SDKs, the queue. This one definition works for all of them.
if (!('toJSON' in BigInt.prototype)) {
  Object.defineProperty(BigInt.prototype, 'toJSON', {
    configurable: true,
    writable: true,
    value(this: bigint) {
      return rawJson(this.toString());
    },
  });
}

/** Returns JSON.rawJSON of Node 20. V8 11.3 has it behind a flag that applies to contexts created after it is set. */
function rawJsonOfNode20(): (text: string) => unknown {
  setFlagsFromString('--harmony-json-parse-with-source');
  return runInNewContext('JSON.rawJSON') as (text: string) => unknown;
}

/**
 * Parses JSON and keeps integers exact: integers that a double would change become bigints. Throws a SyntaxError as
 * JSON.parse does.
 */
export function parseExact(text: string): unknown {
  const safe = shielded(text);
  return safe === text ? JSON.parse(text) : restored(JSON.parse(safe));
}

/** Does the same with pauses, for long text. */
export function* parsingExact(text: string): Generator<void, unknown> {
  const safe = yield* shielding(text);
  const value = yield* parsing(safe);
  yield;
  return safe === text ? value : yield* restoring(value);
}

/**
 * Replaces each integer that a double would change by a string that `restored` recognises; mostly returns the text
 * itself.
 */
export function shielded(text: string): string {
  return mayHoldLongInteger.test(text) ? atOnce(shielding(text)) : text;
}

/** Does the same with pauses, for text of any length. */
export function* shielding(text: string): Generator<void, string> {
  if (!(yield* testing(mayHoldLongInteger, text, leastDigits))) return text;
  let result = '';
  let copied = 0;
  const pauses = new ScanPauses();
  for (let index = 0; index < text.length; index++) {
    if (pauses.isDue(index)) yield;
    const code = text.charCodeAt(index);
    if (code === quote) index = endOfShortText(text, index) ?? (yield* endOfLongText(text, index, pauses));
    else if (isDigit(code)) {
      const start = text.charCodeAt(index - 1) === minus ? index - 1 : index;
      while (isDigit(text.charCodeAt(index + 1))) if (pauses.isDue(++index)) yield;
      if (isPartOfNumber(text.charCodeAt(index + 1))) {
        while (isPartOfNumber(text.charCodeAt(index + 1))) if (pauses.isDue(++index)) yield;
      } else if (index - start >= leastDigits - 1 && isLost(text.slice(start, index + 1))) {
        let next = index + 1;
        while (isBlank(text.charCodeAt(next))) if (pauses.isDue(++next)) yield;
        // A number in the place of a name is not JSON: it stays as it is, and JSON.parse refuses it.
        if (text[next] === ':') continue;
        result += `${text.slice(copied, start)}"${mark}${text.slice(start, index + 1)}"`;
        copied = index + 1;
      }
    }
  }
  return copied === 0 ? text : result + text.slice(copied);
}

/** Converts the strings in a value from a shielded text back to bigints, in place. */
export function restored<Value>(value: Value): Value {
  return atOnce(restoring(value));
}

/** Does the same with pauses, for values of any size. */
export function* restoring<Value>(value: Value): Generator<void, Value> {
  const root: [unknown] = [value];
  yield* someInside(root, (inner, owner, name) => {
    if (typeof inner === 'string' && inner.startsWith(mark)) put(owner, name, BigInt(inner.slice(mark.length)));
    return false;
  });
  return root[0] as Value;
}

/**
 * Returns a copy with bigints as the nearest doubles, for readers that know only doubles, such as schemas. Without
 * bigints, returns the value itself.
 */
export function asDoubles<Value>(value: Value): Value {
  return withIntegers(value, Number);
}

/**
 * Returns a copy with bigints as strings of their digits, as ProtoJSON writes an int64. It is for protobuf, because its
 * Value has no integers. Without bigints, returns the value itself.
 */
export function asTexts<Value>(value: Value): Value {
  return withIntegers(value, String);
}

function withIntegers<Value>(value: Value, as: (integer: bigint) => unknown): Value {
  if (typeof value === 'bigint') return as(value) as Value;
  if (typeof value !== 'object' || value === null) return value;
  const given = value as Record<string, unknown>;
  let copy: typeof given | undefined;
  // Object.entries takes several times as long for an object of many members.
  for (const name of Object.keys(given)) {
    const changed = withIntegers(given[name], as);
    if (changed === given[name]) continue;
    copy ??= (Array.isArray(value) ? [...(value as unknown[])] : { ...given }) as typeof given;
    put(copy, name, changed);
  }
  return (copy as Value | undefined) ?? value;
}

/** True when a double would write other digits. */
function isLost(integer: string): boolean {
  const digits = integer.startsWith('-') ? integer.length - 1 : integer.length;
  return digits > 15 && digits <= maxDigits && !/^-?0/.test(integer) && String(Number(integer)) !== integer;
}

/** Sets a member. A member named `__proto__` must not become the prototype. */
function put(owner: Record<string | number, unknown>, name: string | number, value: unknown): void {
  if (name === '__proto__') Object.defineProperty(owner, name, { value, enumerable: true });
  else owner[name] = value;
}
