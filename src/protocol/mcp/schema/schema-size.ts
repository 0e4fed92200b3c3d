import { atOnce, isJsonObject, visitedAtOnce, type Json, type JsonObject } from '../../../kernel/json.js';
import { percentDecoded } from '../../../kernel/text.js';

const maxExpansion = 10_000;
const maxAlternatives = 1_000;

/** True when the value nests deeper than the limit. */
export function isDeeperThan(value: Json, limit: number): boolean {
  return atOnce(measuringDepth(value, limit));
}

/** Does the same with pauses. Walks level by level, so depth cannot overflow the stack. */
export function* measuringDepth(value: Json, limit: number): Generator<void, boolean> {
  if (limit < 0) return true;
  // Only lists and objects go from level to level: most values are texts and numbers.
  let level: Json[] = [value];
  for (let [depth, count] = [0, 1]; level.length > 0; depth++) {
    const next: Json[] = [];
    for (const item of level) {
      if (++count % visitedAtOnce === 0) yield;
      if (typeof item !== 'object' || item === null) continue;
      const names = Array.isArray(item) ? undefined : Object.keys(item);
      const { length } = names ?? (item as Json[]);
      if (length > 0 && depth === limit) return true;
      for (let index = 0; index < length; index++) {
        if (++count % visitedAtOnce === 0) yield;
        const inner = names ? (item as JsonObject)[names[index]!]! : (item as Json[])[index]!;
        if (typeof inner === 'object' && inner !== null) next.push(inner);
      }
    }
    level = next;
  }
  return false;
}

/** True when the value has more than `limit` values; each 16 characters of text count as one more value. */
export function isLargerThan(value: Json, limit: number): boolean {
  const stack: Json[] = [value];
  for (let size = 0; stack.length > 0; size++) {
    if (size + stack.length > limit) return true;
    const item = stack.pop()!;
    if (typeof item === 'string') size += item.length / 16;
    else if (typeof item === 'object' && item !== null) {
      const keys = Object.keys(item);
      if (keys.length > limit) return true;
      for (const key of keys) size += key.length / 16;
      for (const inner of Object.values(item)) stack.push(inner);
    }
  }
  return false;
}

/**
 * True when the check of one small value against the schema may take long: references form a cycle, point outside the
 * schema or expand to more than 10,000 nodes; or the schema has a very long `enum`, or a pattern with a counted
 * repetition of 100 or more.
 */
export function mayExplode(schema: JsonObject): boolean {
  return new Expansion(schema).sizeOf(schema) > maxExpansion;
}

class Expansion {
  private readonly sizes = new Map<object, number>();

  constructor(private readonly root: JsonObject) {}

  /**
   * Counts the nodes of the value with every reference expanded; Infinity for a cycle and for a reference that cannot
   * be followed.
   */
  sizeOf(value: Json): number {
    if (typeof value === 'string') return /\{\d{3}|\{\d+,\d{3}/.test(value) ? Infinity : 1;
    if (typeof value !== 'object' || value === null) return 1;
    const known = this.sizes.get(value);
    if (known !== undefined) return known;
    this.sizes.set(value, Infinity); // a value that contains itself is a cycle
    const size = this.unfold(value);
    this.sizes.set(value, size);
    return size;
  }

  private unfold(value: JsonObject | Json[]): number {
    let size = 1;
    for (const [key, inner] of Object.entries(value)) {
      if (key === '$dynamicRef' || key === '$recursiveRef') return Infinity;
      if (key === '$id' && typeof inner === 'string' && value !== this.root) return Infinity;
      if (key === 'enum' && Array.isArray(inner) && inner.length > maxAlternatives) return Infinity;
      size += key === '$ref' && typeof inner === 'string' ? this.referred(inner) : this.sizeOf(inner);
    }
    return size;
  }

  private referred(reference: string): number {
    const target = pointedAt(this.root, reference);
    return target === undefined ? Infinity : this.sizeOf(target);
  }
}

/**
 * Returns the target of a JSON pointer in a fragment (`#/$defs/item`); undefined for other references and for a missing
 * target.
 */
export function pointedAt(root: Json, reference: string): Json | undefined {
  if (reference !== '#' && !reference.startsWith('#/')) return undefined;
  let target: Json | undefined = root;
  for (const token of reference.split('/').slice(1)) {
    const key = decode(token);
    if (Array.isArray(target)) target = target[Number(key)];
    else target = isJsonObject(target) && Object.hasOwn(target, key) ? target[key] : undefined;
  }
  return target;
}

function decode(token: string): string {
  return percentDecoded(token)?.replaceAll('~1', '/').replaceAll('~0', '~') ?? token;
}
