import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';

/*
 * Reading foreign ProtoJSON: parsers also accept the snake_case proto names (ProtoJSON specification; v1.0 section 5.5),
 * null stands for an absent member, and only own members count.
 */

/** A member by its camelCase name, else by its snake_case name; undefined when absent or null. */
export function member(object: JsonObject, name: string): Json | undefined {
  if (Object.hasOwn(object, name)) return object[name] ?? undefined;
  const snake = snakeCase(name);
  return snake !== name && Object.hasOwn(object, snake) ? (object[snake] ?? undefined) : undefined;
}

/** A member that is a string; anything else counts as absent. */
export function stringMember(object: JsonObject, name: string): string | undefined {
  const value = member(object, name);
  return typeof value === 'string' ? value : undefined;
}

/** A member that is an object; anything else is an empty one. */
export function objectMember(object: JsonObject, name: string): JsonObject {
  const value = member(object, name);
  return isJsonObject(value) ? value : {};
}

/** A member that is an array; anything else is an empty one. */
export function arrayMember(object: JsonObject, name: string): Json[] {
  const value = member(object, name);
  return Array.isArray(value) ? value : [];
}

/** The texts of a list; what is no text is left out. */
export function stringsMember(object: JsonObject, name: string): string[] {
  return arrayMember(object, name).filter((item) => typeof item === 'string');
}

// Asked for every absent member of every request; the names are those that the code asks for, so they are few.
const snakeNames = new Map<string, string>();

function snakeCase(name: string): string {
  const known = snakeNames.get(name);
  if (known !== undefined) return known;
  const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  snakeNames.set(name, snake);
  return snake;
}
