import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.js';

/** A schema in a form that clients can list, with the corrected problems. */
export interface MendedSchema {
  /** Absent when no tool can be listed with the schema. */
  readonly schema?: JsonObject;
  readonly problems: readonly string[];
  /** The reason why `schema` is absent. */
  readonly refusal?: string;
}

/**
 * Corrects the top level of a tool's schema to the form of MCP: `type` is "object", `properties` is an object of
 * objects, `required` is a list of strings. Many languages write an empty object as an empty list or null; both are
 * corrected. Pure; a schema without problems is returned unchanged.
 */
export function mendSchema(given: JsonObject): MendedSchema {
  const problems: string[] = [];
  const changed: Record<string, Json | undefined> = {};
  for (const name of Object.keys(given))
    if (given[name] === null && !mayBeNull.has(name)) {
      changed[name] = undefined;
      problems.push(`${name} is null`);
    }
  const { type } = given;
  if (type !== 'object') {
    if (type !== undefined && type !== null && !(Array.isArray(type) && type.includes('object')))
      return { problems, refusal: 'type is not "object", but arguments are always an object' };
    changed.type = 'object';
    // MCP requires the type, but a schema without one can only be that of an object.
    if (type !== undefined) problems.push('type is not "object"');
  }
  const { properties, required } = given;
  if (Array.isArray(properties) && properties.length === 0) {
    changed.properties = {};
    problems.push('properties is a list');
  } else if (properties !== undefined && properties !== null) {
    const mended = mendProperties(properties, problems);
    if (!mended) return { problems, refusal: 'properties is not an object of schemas' };
    if (mended !== properties) changed.properties = mended;
  }
  if (required !== undefined && required !== null && !isListOfTexts(required)) {
    changed.required = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : undefined;
    problems.push('required is not a list of names');
  }
  if (Object.keys(changed).length === 0) return { schema: given, problems };
  const entries = Object.entries({ ...given, ...changed }).filter(([, member]) => member !== undefined);
  return { schema: Object.fromEntries(entries) as JsonObject, problems };
}

/** Members that hold data, and not a schema. */
const mayBeNull: ReadonlySet<string> = new Set(['default', 'const']);

/**
 * Corrects the properties; undefined when they are not an object of schemas. `true`, `false` and null in place of a
 * schema are written as objects.
 */
function mendProperties(properties: Json, problems: string[]): JsonObject | undefined {
  if (!isJsonObject(properties)) return undefined;
  const schemas = Object.entries(properties);
  if (schemas.every(([, schema]) => isJsonObject(schema))) return properties;
  if (!schemas.every(([, schema]) => isJsonObject(schema) || schema === null || typeof schema === 'boolean'))
    return undefined;
  for (const [name, schema] of schemas) if (schema === null) problems.push(`properties.${name} is null`);
  return Object.fromEntries(
    schemas.map(([name, schema]) => [name, isJsonObject(schema) ? schema : schema === false ? { not: {} } : {}]),
  );
}

function isListOfTexts(value: Json): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
