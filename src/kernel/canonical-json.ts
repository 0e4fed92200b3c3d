/**
 * JSON in its one canonical spelling (RFC 8785, JCS): members sorted by UTF-16 code units, no white space, numbers and
 * escapes as ECMAScript writes them, bigints with all their digits. For hashes and signatures. Members that are `undefined` are left out. Throws a
 * TypeError for what I-JSON cannot hold: a number that is not finite, a lone surrogate, anything that is not JSON.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value === 'string') return text(value);
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return number(value);
  if (typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return list(value);
  if (typeof value === 'object') return members(value as Record<string, unknown>);
  throw new TypeError(`not a JSON value: ${typeof value}`);
}

function list(values: readonly unknown[]): string {
  let parts = '';
  for (const value of values) parts += (parts && ',') + canonicalJson(value);
  return `[${parts}]`;
}

function members(object: Record<string, unknown>): string {
  let parts = '';
  for (const key of sorted(Object.keys(object))) {
    const value = object[key];
    if (value !== undefined) parts += `${parts && ','}${text(key)}:${canonicalJson(value)}`;
  }
  return `{${parts}}`;
}

/**
 * In the order that RFC 8785 section 3.2.3 asks for: UTF-16 code units, as `<` and sort() compare. Objects are small, and every audited act is
 * hashed: in place, few keys are in order at a third of what sort() takes.
 */
function sorted(keys: string[]): string[] {
  if (keys.length > 40) return keys.sort();
  for (let end = 1; end < keys.length; end++) {
    const key = keys[end]!;
    let place = end;
    for (; place > 0 && keys[place - 1]! > key; place--) keys[place] = keys[place - 1]!;
    keys[place] = key;
  }
  return keys;
}

function number(value: number): string {
  if (!Number.isFinite(value)) throw new TypeError('not a JSON number');
  return String(value); // as JSON.stringify writes it
}

// What is spelled as it is: no quote, no backslash, no control character, nothing beyond ASCII.
const plain = /^[ !#-[\]-~]*$/;

function text(value: string): string {
  if (plain.test(value)) return `"${value}"`;
  if (!value.isWellFormed()) throw new TypeError('a lone surrogate has no canonical form');
  return JSON.stringify(value);
}
