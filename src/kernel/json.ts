/** A JSON value, as it is read from and written to the wire. */
export type Json = string | number | bigint | boolean | null | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

/** True for a JSON object: not null, not an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Text that PostgreSQL can store: no NUL, no lone surrogate. Foreign text passes it before it reaches a row.
 * Both are legal in a JavaScript string and refused by `text` and `jsonb`.
 */
export function storableText(text: string, maxLength = 4_000): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;
  return cut.toWellFormed().replaceAll('\u0000', '\uFFFD');
}
