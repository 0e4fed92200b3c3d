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
