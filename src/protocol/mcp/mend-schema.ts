import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';

/** A schema that clients can list, and what had to change for that. */
export interface MendedSchema {
  /** Absent: no tool can be listed with it. */
  readonly schema?: JsonObject;
  readonly problems: readonly string[];
  /** Why there is no schema. */
  readonly refusal?: string;
}

/**
 * The top of a schema as MCP has it for tools: `type` is "object", `properties` an object of objects, `required` a list of texts. Empty
 * lists and nulls, which many languages write for an empty object, are mended. Pure; a schema without faults is returned as it is.
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
      return { problems, refusal: 'type is not "object", and arguments are one' };
    changed.type = 'object';
    // A schema that says nothing else of its type is an object's for MCP.
    if (type !== undefined) problems.push('type is not "object"');
  }
  const { properties, required } = given;
  if (Array.isArray(properties) && properties.length === 0) {
    changed.properties = {};
    problems.push('properties is a list');
  } else if (properties !== undefined && properties !== null) {
    const mended = mendProperties(properties, problems);
    if (!mended) return { problems, refusal: 'properties is no object of schemas' };
    if (mended !== properties) changed.properties = mended;
  }
  if (required !== undefined && required !== null && !isListOfTexts(required)) {
    changed.required = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : undefined;
    problems.push('required is no list of names');
  }
  if (Object.keys(changed).length === 0) return { schema: given, problems };
  const entries = Object.entries({ ...given, ...changed }).filter(([, member]) => member !== undefined);
  return { schema: Object.fromEntries(entries) as JsonObject, problems };
}

/** Members whose value is data, and not a schema. */
const mayBeNull: ReadonlySet<string> = new Set(['default', 'const']);

/** Undefined for what is no object of schemas. `true`, `false` and null in place of a schema are written as objects. */
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
