import { setImmediate as nextTurn } from 'node:timers/promises';
import { weighing, weightOf } from '../kernel/json.js';
import { parsingExact, shielded, shielding } from '../protocol/exact-integers.js';
import { writing } from '../protocol/json-pieces.js';
import { parseJson, parsingJson, type JsonLimits, type ParsedJson } from '../protocol/json-text.js';

/*
 * Work on long JSON, in turns of the event loop: other requests run in between. Short JSON is handled at once.
 */

/** Characters of a text that takes milliseconds to parse or to write. */
export const longText = 65_536;
/** How long a piece of work may take before others go first, in milliseconds. */
const turnMs = 5;

/** Runs work that may be interrupted at each `yield`. */
export async function inTurns<Result>(work: Generator<void, Result>): Promise<Result> {
  for (let begunAt = performance.now(); ;) {
    const { done, value } = work.next();
    if (done) return value;
    if (performance.now() - begunAt < turnMs) continue;
    await nextTurn();
    begunAt = performance.now();
  }
}

/** Lets others go first after work on a value that was long. */
export function restAfter(value: unknown): Promise<void> | undefined {
  return weightOf(value, longText) < longText ? undefined : nextTurn();
}

/** Parses text as parseJson does. */
export async function parseLongJson(text: string, limits?: JsonLimits): Promise<ParsedJson> {
  if (text.length < longText) return parseJson(text, limits);
  const parsed = await inTurns(parsingJson(text, limits));
  // The caller of this function works on the value for about as long as it took to parse.
  await nextTurn();
  return parsed;
}

/** Parses text as parseExact does. */
export function parseLongExact(text: string): Promise<unknown> {
  return inTurns(parsingExact(text));
}

/** Returns the `weightOf` of a value. */
export function weigh(value: unknown): number | Promise<number> {
  const weight = weightOf(value, longText);
  return weight < longText ? weight : inTurns(weighing(value));
}

/**
 * Writes a value like JSON.stringify.
 * @param weight its `weightOf`, when it is known.
 */
export function stringifyLong(value: unknown, weight = weightOf(value, longText)): string | Promise<string> {
  return weight < longText ? JSON.stringify(value) : inTurns(writing(value));
}

/** Writes a value for a library that parses JSON itself: integers that it would round are shielded. */
export async function stringifyShielded(value: unknown): Promise<string> {
  const text = await stringifyLong(value);
  return text.length < longText ? shielded(text) : inTurns(shielding(text));
}
