import { createHash } from 'node:crypto';
import { canonicalJson } from '../../../kernel/canonical-json.js';
import { isJsonObject } from '../../../kernel/json.js';

/**
 * One difference between two cards. `path` is a JSON pointer (RFC 6901) into the later card; for `removed`, into the
 * earlier card.
 */
export interface CardChange {
  readonly path: string;
  readonly kind: 'added' | 'removed' | 'changed';
  readonly before?: unknown;
  readonly after?: unknown;
}

const maxChanges = 200;
const maxValueLength = 1_000;

/**
 * Hashes the content of a card: hex sha256 of its canonical JSON (RFC 8785). `signers` replaces the signatures, because
 * their bytes may differ each time a card is signed; without it the signatures do not count.
 */
export function contentHash(card: object, signers?: unknown): string {
  return createHash('sha256')
    .update(canonicalJson({ ...card, signatures: signers }))
    .digest('hex');
}

/**
 * Lists the changes between two cards (both raw or both normalised), for a person to read. The result is deterministic:
 * members are in order of their names. It has at most 200 changes, and a value with more than 1,000 characters of JSON
 * is cut to a text. Lists of items with distinct `id`s (skills) are compared by id, so that one removed skill is one
 * change; a new order of the ids that both lists have is a change of the list itself.
 */
export function diffCards(before: object, after: object): CardChange[] {
  const changes: CardChange[] = [];
  compare(before, after, '', changes);
  return changes;
}

function compare(before: unknown, after: unknown, path: string, changes: CardChange[]): void {
  if (changes.length >= maxChanges) return;
  if (isJsonObject(before) && isJsonObject(after)) return compareMembers(before, after, path, changes);
  if (Array.isArray(before) && Array.isArray(after)) return compareLists(before, after, path, changes);
  if (before === after) return;
  if (before === undefined) changes.push({ path, kind: 'added', after: brief(after) });
  else if (after === undefined) changes.push({ path, kind: 'removed', before: brief(before) });
  else changes.push({ path, kind: 'changed', before: brief(before), after: brief(after) });
}

function compareMembers(before: object, after: object, path: string, changes: CardChange[]): void {
  const [left, right] = [new Map(Object.entries(before)), new Map(Object.entries(after))];
  for (const key of [...new Set([...left.keys(), ...right.keys()])].sort()) {
    compare(left.get(key), right.get(key), `${path}/${escape(key)}`, changes);
  }
}

function compareLists(before: unknown[], after: unknown[], path: string, changes: CardChange[]): void {
  const [left, right] = [byId(before), byId(after)];
  if (left && right) return compareById(left, right, path, changes);
  for (let index = 0; index < Math.max(before.length, after.length); index++) {
    compare(before[index], after[index], `${path}/${index}`, changes);
  }
}

type ById = Map<string, { item: unknown; index: number }>;

function compareById(left: ById, right: ById, path: string, changes: CardChange[]): void {
  const [sharedBefore, sharedAfter] = [
    [...left.keys()].filter((id) => right.has(id)),
    [...right.keys()].filter((id) => left.has(id)),
  ];
  if (sharedBefore.join('\n') !== sharedAfter.join('\n') && changes.length < maxChanges) {
    changes.push({ path, kind: 'changed', before: brief(sharedBefore), after: brief(sharedAfter) });
  }
  for (const [id, { item, index }] of left) {
    if (!right.has(id)) compare(item, undefined, `${path}/${index}`, changes);
  }
  for (const [id, { item, index }] of right) compare(left.get(id)?.item, item, `${path}/${index}`, changes);
}

function byId(list: unknown[]): ById | undefined {
  const found: ById = new Map();
  for (const [index, item] of list.entries()) {
    if (!isJsonObject(item) || typeof item.id !== 'string' || found.has(item.id)) return undefined;
    found.set(item.id, { item, index });
  }
  return found;
}

function brief(value: unknown): unknown {
  const text = JSON.stringify(value);
  return text.length > maxValueLength ? `${text.slice(0, maxValueLength)}…` : value;
}

function escape(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
