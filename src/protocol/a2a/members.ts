import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';

/*
 * Readers for ProtoJSON from outside: they also accept the snake_case proto names (ProtoJSON specification; v1.0
 * section 5.5), treat null as absent, and read only own members.
 */

/** Returns a member by its camelCase name, or by its snake_case name; undefined when it is absent or null. */
export function member(object: JsonObject, name: string): Json | undefined {
  if (Object.hasOwn(object, name)) return object[name] ?? undefined;
  const snake = snakeCase(name);
  return snake !== name && Object.hasOwn(object, snake) ? (object[snake] ?? undefined) : undefined;
}

/** Returns a string member; any other value counts as absent. */
export function stringMember(object: JsonObject, name: string): string | undefined {
  const value = member(object, name);
  return typeof value === 'string' ? value : undefined;
}

/** Returns an object member; any other value counts as an empty object. */
export function objectMember(object: JsonObject, name: string): JsonObject {
  const value = member(object, name);
  return isJsonObject(value) ? value : {};
}

/** Returns an array member; any other value counts as an empty array. */
export function arrayMember(object: JsonObject, name: string): Json[] {
  const value = member(object, name);
  return Array.isArray(value) ? value : [];
}

/** Returns the strings of a list member; other items are dropped. */
export function stringsMember(object: JsonObject, name: string): string[] {
  return arrayMember(object, name).filter((item) => typeof item === 'string');
}

// Cached, because every absent member of every request needs its snake_case name. The code asks for few different
// names.
const snakeNames = new Map<string, string>();

function snakeCase(name: string): string {
  const known = snakeNames.get(name);
  if (known !== undefined) return known;
  const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  snakeNames.set(name, snake);
  return snake;
}
