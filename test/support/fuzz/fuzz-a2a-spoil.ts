import { hostileTexts, hostileValues } from './fuzz-json.js';
import type { Random } from './random.js';

/*
 * Corrupts valid requests: a value at any place is replaced by another value or type, dropped, doubled, renamed or
 * nested. Some replacements exist only as text: numbers that no double can hold, duplicate members, `__proto__`.
 */

type Container = Record<string, unknown> | unknown[];

interface Place {
  readonly holder: Container;
  readonly key: string | number;
}

/** Marks the place of a raw text that no value serializes to. No other text contains this character. */
const mark = '\u{10fffd}';
const rawTexts = [
  '1e400',
  '-1e400',
  '9'.repeat(400),
  '-0',
  '1E+2',
  '0.1e-400',
  '{"__proto__":{"polluted":true}}',
  '{"\\u005f_proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"a":1,"a":2}',
  '"\\u0000"',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '{"\\ud800":1}',
  '"\\u202e\\u2066"',
  `${'['.repeat(58)}${']'.repeat(58)}`,
  `${'['.repeat(64)}${']'.repeat(64)}`,
  `${'{"a":'.repeat(70)}1${'}'.repeat(70)}`,
  `${'['.repeat(50_000)}${']'.repeat(50_000)}`,
  'NaN',
  'undefined',
  '01',
  '"\t"',
  '',
] as const;

/**
 * Returns a replacement for a value. Large replacements are rare, and their sizes are below the body limit of the
 * doors.
 */
function otherValue(old: unknown, random: Random): unknown {
  return random.pick<() => unknown>([
    () => random.pick(hostileValues),
    () => random.pick(hostileTexts),
    () => `${mark}${random.whole(rawTexts.length)}${mark}`,
    () => [old],
    () => ({ value: old }),
    () =>
      typeof old === 'string'
        ? random.pick([Number(old), old.toUpperCase(), ` ${old}`, `${old}\u202e`])
        : (JSON.stringify(old) ?? ''),
    () => (Array.isArray(old) ? [...(old as unknown[]), ...(old as unknown[])] : null),
    () => (random.chance(0.2) ? 'a'.repeat(random.pick([257, 1_025, 4_097, 70_000, 500_000])) : ''),
    () => (random.chance(0.05) ? wide(random) : {}),
  ])();
}

/** Returns a value with many members or items that still fits in the body limit. */
function wide(random: Random): unknown {
  const length = random.pick([101, 1_000, 20_000, 90_000]);
  return random.pick<() => unknown>([
    () => Array.from({ length }, () => 0),
    () => Array.from({ length }, () => ({})),
    () => Object.fromEntries(Array.from({ length }, (_, index) => [`k${index}`, index])),
    () => Object.fromEntries(Array.from({ length }, (_, index) => [`k${index}`, 'v'])),
  ])();
}

function placesIn(value: unknown): Place[] {
  const places: Place[] = [];
  const stack = [value];
  while (stack.length > 0 && places.length < 500) {
    const holder = stack.pop();
    if (typeof holder !== 'object' || holder === null) continue;
    for (const [key, inner] of Object.entries(holder)) {
      places.push({ holder: holder as Container, key: Array.isArray(holder) ? Number(key) : key });
      stack.push(inner);
    }
  }
  return places;
}

/** Corrupts one place of a value, in place. */
function spoilOnce(value: unknown, random: Random): void {
  const places = placesIn(value);
  if (places.length === 0) return;
  const { holder, key } = random.pick(places);
  if (Array.isArray(holder)) {
    const at = Number(key);
    random.pick([
      () => void (holder[at] = otherValue(holder[at], random)),
      () => void holder.splice(at, 1),
      () => void holder.push(holder[at]),
    ])();
    return;
  }
  const old = holder[key];
  const snake = String(key).replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const put = (name: string, put: unknown): void =>
    void Object.defineProperty(holder, name, { value: put, enumerable: true, writable: true, configurable: true });
  random.pick([
    () => void (holder[key] = otherValue(old, random)),
    () => void (holder[key] = otherValue(old, random)),
    () => void delete holder[key],
    () => put(snake, otherValue(old, random)),
    () => put(random.pick(hostileTexts), old),
    () => put(`${mark}${key}${mark}`, otherValue(old, random)),
  ])();
}

/** Returns the JSON text of a value with `times` corruptions. Raw texts and duplicate members replace their marks. */
export function spoiled(value: unknown, times: number, random: Random): string {
  const copy = structuredClone(value);
  for (let left = times; left > 0; left--) spoilOnce(copy, random);
  return JSON.stringify(copy)
    .replaceAll(new RegExp(`"${mark}(\\d+)${mark}"(?!:)`, 'gu'), (_, index: string) => rawTexts[Number(index)]!)
    .replaceAll(mark, '');
}

/** Returns how often a request is corrupted. Many requests stay valid, so that the gateway has tasks to work on. */
export function damage(random: Random): number {
  const chance = random.next();
  return chance < 0.45 ? 0 : chance < 0.85 ? 1 : 1 + random.whole(4);
}
