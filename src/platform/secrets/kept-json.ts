import { storableText, type Json } from '../../kernel/json.js';
import { redact } from './redact.js';

const maxLength = 4_096;

/**
 * A value as JSON text that a row may keep: secrets are replaced as in logs, and of what is longer than 4,096 characters the beginning is
 * kept, `{ truncated: true, characters, beginning }`.
 */
export function keptJson(value: Json): string {
  const text = JSON.stringify(redact(value));
  if (text.length <= maxLength) return text;
  const beginning = storableText(text, maxLength / 2);
  return JSON.stringify({ truncated: true, characters: text.length, beginning });
}
