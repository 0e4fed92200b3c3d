import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import type { Message } from '../../protocol/a2a/model.js';
import { unwrapUnknownPart } from '../../protocol/a2a/unknown-part.js';

/**
 * Returns a change of the params of a v0.3 request that puts parts of unknown kinds back as they were, because the SDK
 * knows them only as data (AN-62). Undefined for a message without such parts.
 */
export function restoringUnknownParts({ parts }: Message): ((params: JsonObject) => void) | undefined {
  const whole = parts.map(unwrapUnknownPart);
  if (whole.every((part) => part === undefined)) return undefined;
  return ({ message }) => {
    if (isJsonObject(message) && Array.isArray(message.parts))
      message.parts = message.parts.map((part, index) => whole[index] ?? part);
  };
}
