import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.js';
import { metaCheck } from './schema-engine.js';
import { isLargerThan, pointedAt } from './schema-size.js';

/** Most values of a schema, as `isLargerThan` counts them: the walk takes a few milliseconds. */
const maxSize = 5_000;
/** Members that hold data, even when the data looks like a schema. */
const data: ReadonlySet<string> = new Set(['const', 'default', 'enum', 'examples']);

/**
 * Says why a schema does not compile, as far as a walk through it can find out: it breaks the schema of its dialect,
 * refers to a target outside itself, or has an invalid pattern. Undefined when no fault is found; a schema of an
 * unknown dialect is not checked, nor a very large one, because the walk would hold up other callers. Pure.
 *
 * @param isPattern true when a regular expression can be used.
 */
export function schemaFault(schema: JsonObject, isPattern: (pattern: string) => boolean): string | undefined {
  if (isLargerThan(schema, maxSize)) return undefined;
  const isValid = metaCheck(schema.$schema);
  if (isValid && !isValid(schema)) return 'not a valid JSON Schema of its dialect';
  const members = membersOf(schema);
  // Below a nested id, a reference has another base.
  const hasIds = members.some(
    ([name, value, owner]) => name === '$id' && typeof value === 'string' && owner !== schema,
  );
  const anchors = new Set(members.filter(([name]) => /anchor$/i.test(name)).map(([, value]) => value));
  for (const [name, value, owner] of members) {
    if (name === '$ref' && typeof value === 'string' && !hasIds && !hasTarget(value, schema, anchors))
      return `it refers to ${JSON.stringify(value.slice(0, 200))}, which it does not contain`;
    if (name === 'pattern' && typeof value === 'string' && !isPattern(value))
      return `a pattern cannot be checked: ${value.slice(0, 100)}`;
    if (owner.patternProperties === value && isJsonObject(value))
      for (const pattern of Object.keys(value))
        if (!isPattern(pattern)) return `a pattern cannot be checked: ${pattern.slice(0, 100)}`;
  }
  return undefined;
}

type Member = readonly [name: string, value: Json, owner: JsonObject];

function membersOf(schema: JsonObject): Member[] {
  const members: Member[] = [];
  const stack: Json[] = [schema];
  while (stack.length > 0) {
    const value = stack.pop()!;
    if (Array.isArray(value)) stack.push(...value);
    else if (isJsonObject(value))
      for (const [name, inner] of Object.entries(value)) {
        members.push([name, inner, value]);
        if (typeof inner === 'object' && inner !== null && !data.has(name)) stack.push(inner);
      }
  }
  return members;
}

function hasTarget(reference: string, schema: JsonObject, anchors: ReadonlySet<Json>): boolean {
  const { $id } = schema;
  const base = typeof $id === 'string' ? $id.replace(/#$/, '') : '';
  const local = base !== '' && reference.startsWith(base) ? reference.slice(base.length) || '#' : reference;
  if (!local.startsWith('#')) return false;
  return pointedAt(schema, local) !== undefined || anchors.has(local.slice(1));
}
