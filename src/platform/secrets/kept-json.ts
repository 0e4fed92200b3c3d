import { isJsonObject, storableText, weightOf, type Json, type JsonObject } from '../../kernel/json.js';
import { redact } from './redact.js';

const maxLength = 4_096;

/** Characters of a value that are searched for secrets: replacing them may shorten the text. */
const maxSearched = 4 * maxLength;

/**
 * Serializes a value for storage in a row: secrets are replaced as in logs. Of a text longer than 4,096 characters
 * only the beginning is stored, as `{ truncated: true, characters, beginning }`, with about the number of characters.
 */
export function keptJson(value: Json): string {
  const isLong = weightOf(value, maxSearched) >= maxSearched;
  const text = JSON.stringify(redact(isLong ? beginningOf(value, { length: maxSearched }) : value));
  if (text.length <= maxLength && !isLong) return text;
  const characters = isLong ? weightOf(value) : text.length;
  return JSON.stringify({ truncated: true, characters, beginning: storableText(text, maxLength / 2) });
}

/** Returns the value without the items after the first `length` characters. A text stays whole, as a secret may be. */
function beginningOf(value: Json, left: { length: number }): Json {
  left.length -= typeof value === 'string' ? value.length : 8;
  if (Array.isArray(value)) {
    const items: Json[] = [];
    for (const item of value) {
      if (left.length <= 0) break;
      items.push(beginningOf(item, left));
    }
    return items;
  }
  if (!isJsonObject(value)) return value;
  const members: JsonObject = {};
  for (const name of Object.keys(value)) {
    if (left.length <= 0) break;
    left.length -= name.length;
    members[name] = beginningOf(value[name]!, left);
  }
  return members;
}
