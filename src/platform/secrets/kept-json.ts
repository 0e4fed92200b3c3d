import { storableText, type Json } from '../../kernel/json.js';
import { redact } from './redact.js';

const maxLength = 4_096;

/**
 * Serializes a value for storage in a row: secrets are replaced as in logs. Of a text longer than 4,096 characters
 * only the beginning is stored, as `{ truncated: true, characters, beginning }`.
 */
export function keptJson(value: Json): string {
  const text = JSON.stringify(redact(value));
  if (text.length <= maxLength) return text;
  const beginning = storableText(text, maxLength / 2);
  return JSON.stringify({ truncated: true, characters: text.length, beginning });
}
