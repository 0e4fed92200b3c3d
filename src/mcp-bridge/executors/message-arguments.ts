import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import { parseJson } from '../../protocol/json-text.js';
import type { Message } from '../../protocol/a2a/model.js';

/** What was found, or why nothing was, in words for whoever sent the message. */
export type Found = { readonly ok: true; readonly args: JsonObject } | { readonly ok: false; readonly reason: string };

/**
 * The arguments that a message holds for whoever wants those of a JSON Schema: its one data part that is an object; else a text that is
 * a JSON object; else its text, where the schema requires nothing but one string. A message without parts of either kind is for a schema
 * that requires nothing. Pure.
 */
export function argumentsIn({ parts }: Pick<Message, 'parts'>, schema: JsonObject): Found {
  const data = parts.flatMap((part) => (isJsonObject(part.data) ? [part.data] : []));
  if (data.length === 1) return { ok: true, args: data[0]! };
  if (data.length > 1) return { ok: false, reason: 'the arguments are one data part, and the message has several' };
  const text = parts.flatMap((part) => part.text ?? []).join('\n');
  const parsed = /^\s*\{/.test(text) ? parseJson(text) : undefined;
  if (parsed?.ok && isJsonObject(parsed.value)) return { ok: true, args: parsed.value };
  const required = namesIn(schema);
  if (text.trim() === '' && required.length === 0) return { ok: true, args: {} };
  const only = soleText(schema, required);
  if (only !== undefined && text !== '') return { ok: true, args: { [only]: text } };
  return { ok: false, reason: 'the arguments are a data part that is an object, or a text that is a JSON object' };
}

function namesIn({ required }: JsonObject): string[] {
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
}

function soleText({ properties }: JsonObject, [name, ...others]: readonly string[]): string | undefined {
  if (name === undefined || others.length > 0 || !isJsonObject(properties) || !Object.hasOwn(properties, name))
    return undefined;
  const property = properties[name];
  return isJsonObject(property) && property.type === 'string' ? name : undefined;
}
