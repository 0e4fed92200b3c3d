import { isJsonObject, type JsonObject } from '../../../kernel/json.js';
import type { DecodeOptions } from '../dialect.js';
import { member } from '../members.js';
import type { Decoded, OperationName } from '../request/operations.js';
import { decodeAs } from './decode.js';

/**
 * Decodes the path, query and body of a v0.3 REST request to an operation. Bodies are in the JSON of the v0.3 proto or
 * in that of JSON-RPC. The readers of messages, parts and configurations accept both; this code converts the remaining
 * differences.
 */
export function decodeRestParams(
  name: OperationName,
  path: Readonly<Record<string, string>>,
  given: JsonObject,
  options: DecodeOptions,
): Decoded {
  return decodeAs({ name }, { ...bodyOf(name, given), ...path }, options);
}

function bodyOf(name: OperationName, given: JsonObject): JsonObject {
  if (name === 'CreateTaskPushNotificationConfig') return { pushNotificationConfig: pushConfigOf(given) };
  const isSend = name === 'SendMessage' || name === 'SendStreamingMessage';
  // The proto field is `request`; its JSON name is `message`.
  return isSend && given.message === undefined && given.request !== undefined
    ? { ...given, message: given.request }
    : given;
}

/**
 * Returns the configuration in the body of a create request: that of a TaskPushNotificationConfig (which the official
 * SDK posts), that of a CreateTaskPushNotificationConfigRequest with its `configId`, or the body itself.
 */
function pushConfigOf(given: JsonObject): JsonObject {
  const request = member(given, 'config');
  const outer = isJsonObject(request) ? request : given;
  const inner = member(outer, 'pushNotificationConfig');
  const config = isJsonObject(inner) ? inner : outer;
  const configId = member(given, 'configId');
  return configId === undefined || member(config, 'id') ? config : { ...config, id: configId };
}
