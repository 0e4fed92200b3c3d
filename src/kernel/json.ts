/** A JSON value, as read from and written to the wire. */
export type Json = string | number | bigint | boolean | null | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

/** True for a JSON object: not null, not an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns text that PostgreSQL can store: without NUL and lone surrogates, cut to `maxLength` characters. Both are
 * legal in a JavaScript string, but `text` and `jsonb` refuse them. Text from outside passes this function before it
 * reaches a row.
 */
export function storableText(text: string, maxLength = 4_000): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;
  return cut.toWellFormed().replaceAll('\u0000', '\uFFFD');
}

/**
 * Estimates the number of characters in a value without serialising it, for limits on what is stored.
 * @param most the count may stop here.
 */
export function weightOf(value: unknown, most = Infinity): number {
  return atOnce(weighing(value, most));
}

/** Values that are visited between two pauses. */
export const visitedAtOnce = 10_000;

/** Does the same with pauses, for values of any size. */
export function* weighing(value: unknown, most = Infinity): Generator<void, number> {
  let [weight, count] = [0, 0];
  const stack: object[] = [];
  // Only objects go over the stack: most values are texts and numbers.
  const add = (inner: unknown): void => {
    if (typeof inner === 'string') weight += inner.length;
    else if (typeof inner === 'object' && inner !== null) stack.push(inner);
    else weight += 8;
  };
  add(value);
  while (stack.length > 0 && weight < most) {
    const item = stack.pop()!;
    const names = Array.isArray(item) ? undefined : Object.keys(item);
    const list = names ?? (item as unknown[]);
    if (!names) weight += list.length;
    if (++count % visitedAtOnce === 0) yield;
    for (let index = 0; index < list.length && weight < most; index++) {
      if (++count % visitedAtOnce === 0) yield;
      if (names) weight += names[index]!.length;
      add(names ? (item as Record<string, unknown>)[names[index]!] : list[index]);
    }
  }
  return weight;
}

/** Tests one value; `owner` is the list or the object that has it, `name` its index or name there. */
type Test = (inner: unknown, owner: Record<string | number, unknown>, name: string | number) => boolean;

/**
 * Visits everything in a list or an object, at all levels, until `test` returns true; with pauses. It uses its own
 * stack, so depth cannot overflow the call stack.
 */
export function* someInside(root: object, test: Test): Generator<void, boolean> {
  const stack: object[] = [root];
  for (let count = 1; stack.length > 0; count++) {
    if (count % visitedAtOnce === 0) yield;
    const owner = stack.pop() as Record<string | number, unknown>;
    const names = Array.isArray(owner) ? undefined : Object.keys(owner);
    const { length } = names ?? (owner as unknown as unknown[]);
    for (let index = 0; index < length; index++) {
      if (++count % visitedAtOnce === 0) yield;
      const name = names ? names[index]! : index;
      if (test(owner[name], owner, name)) return true;
      // The test may have replaced the value.
      const inner = owner[name];
      if (typeof inner === 'object' && inner !== null) stack.push(inner);
    }
  }
  return false;
}

/** Runs work with pauses to its end, without a pause. */
export function atOnce<Result>(work: Generator<void, Result>): Result {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}
