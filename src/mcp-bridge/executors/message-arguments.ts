import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import { parseJson } from '../../protocol/json-text.js';
import type { Message } from '../../protocol/a2a/model.js';

/** The arguments, or the reason why there are none, as text for the sender of the message. */
export type Found = { readonly ok: true; readonly args: JsonObject } | { readonly ok: false; readonly reason: string };

/**
 * Returns the arguments in a message for a JSON Schema. Sources in this order: its only data part that is an object; a
 * text that is a JSON object; its text, when the schema requires exactly one string. A message without such parts
 * matches a schema that requires nothing. Pure.
 */
export function argumentsIn({ parts }: Pick<Message, 'parts'>, schema: JsonObject): Found {
  const data = parts.flatMap((part) => (isJsonObject(part.data) ? [part.data] : []));
  if (data.length === 1) return { ok: true, args: data[0]! };
  if (data.length > 1) return { ok: false, reason: 'the arguments must be one data part, but the message has several' };
  const text = parts.flatMap((part) => part.text ?? []).join('\n');
  const parsed = /^\s*\{/.test(text) ? parseJson(text) : undefined;
  if (parsed?.ok && isJsonObject(parsed.value)) return { ok: true, args: parsed.value };
  const required = namesIn(schema);
  if (text.trim() === '' && required.length === 0) return { ok: true, args: {} };
  const only = onlyTextProperty(schema, required);
  if (only !== undefined && text !== '') return { ok: true, args: { [only]: text } };
  return { ok: false, reason: 'the arguments must be a data part that is an object, or a text that is a JSON object' };
}

function namesIn({ required }: JsonObject): string[] {
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
}

function onlyTextProperty({ properties }: JsonObject, [name, ...others]: readonly string[]): string | undefined {
  if (name === undefined || others.length > 0 || !isJsonObject(properties) || !Object.hasOwn(properties, name))
    return undefined;
  const property = properties[name];
  return isJsonObject(property) && property.type === 'string' ? name : undefined;
}
