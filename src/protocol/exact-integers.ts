import { randomBytes } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { endOfText, isDigit, isPartOfNumber, minus, quote } from './json-scan.js';

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
// A double holds every integer of 15 digits.
const mayHoldLongInteger = /\d{16}/;
const whiteSpace = new Set<string | undefined>([' ', '\t', '\r', '\n']);

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

/**
 * Replaces each integer that a double would change by a string that `restored` recognises; mostly returns the text
 * itself.
 */
export function shielded(text: string): string {
  if (!mayHoldLongInteger.test(text)) return text;
  let result = '';
  let copied = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === quote) index = endOfText(text, index);
    else if (isDigit(code)) {
      const start = text.charCodeAt(index - 1) === minus ? index - 1 : index;
      while (isDigit(text.charCodeAt(index + 1))) index++;
      if (isPartOfNumber(text.charCodeAt(index + 1))) {
        while (isPartOfNumber(text.charCodeAt(index + 1))) index++;
      } else if (index - start > 14 && isLost(text.slice(start, index + 1)) && !isName(text, index + 1)) {
        result += `${text.slice(copied, start)}"${mark}${text.slice(start, index + 1)}"`;
        copied = index + 1;
      }
    }
  }
  return copied === 0 ? text : result + text.slice(copied);
}

/** Converts the strings in a value from a shielded text back to bigints, in place. */
export function restored<Value>(value: Value): Value {
  const root: unknown[] = [value];
  const stack: object[] = [root];
  const visit = (owner: Record<string | number, unknown>, name: string | number): void => {
    const inner = owner[name];
    if (typeof inner === 'string') {
      if (inner.startsWith(mark)) put(owner, name, BigInt(inner.slice(mark.length)));
    } else if (typeof inner === 'object' && inner !== null) stack.push(inner);
  };
  for (let owner = stack.pop(); owner !== undefined; owner = stack.pop()) {
    if (Array.isArray(owner)) for (let index = 0; index < owner.length; index++) visit(owner as never, index);
    else for (const name of Object.keys(owner)) visit(owner as never, name);
  }
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
  let copy: Record<string, unknown> | undefined;
  for (const [name, inner] of Object.entries(value)) {
    const changed: unknown = withIntegers(inner as unknown, as);
    if (changed === inner) continue;
    copy ??= (Array.isArray(value) ? [...(value as unknown[])] : { ...value }) as Record<string, unknown>;
    put(copy, name, changed);
  }
  return (copy as Value | undefined) ?? value;
}

/** True when a double would write other digits. */
function isLost(integer: string): boolean {
  const digits = integer.startsWith('-') ? integer.length - 1 : integer.length;
  return digits > 15 && digits <= maxDigits && !/^-?0/.test(integer) && String(Number(integer)) !== integer;
}

/**
 * True for a number in the place of a member name. That is not JSON, so it stays unchanged and JSON.parse refuses it.
 */
function isName(text: string, after: number): boolean {
  let next = after;
  while (whiteSpace.has(text[next])) next++;
  return text[next] === ':';
}

/** Sets a member. A member named `__proto__` must not become the prototype. */
function put(owner: Record<string | number, unknown>, name: string | number, value: unknown): void {
  if (name === '__proto__') Object.defineProperty(owner, name, { value, enumerable: true });
  else owner[name] = value;
}
