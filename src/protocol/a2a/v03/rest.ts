import { isJsonObject, type JsonObject } from '../../../kernel/json.js';
import type { DecodeOptions } from '../dialect.js';
import { member } from '../members.js';
import type { Decoded, OperationName } from '../request/operations.js';
import { decodeAs } from './decode.js';

/**
 * Path, query and body of a v0.3 REST request to an operation. Bodies are the JSON of the v0.3 proto or that of JSON-RPC: the readers of
 * messages, parts and configurations know both; what differs around them is evened out here.
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
  // The field of the proto is `request`; its JSON name is `message`.
  return isSend && given.message === undefined && given.request !== undefined
    ? { ...given, message: given.request }
    : given;
}

/**
 * The configuration in the body of a create: that of a TaskPushNotificationConfig (what the official SDK posts), of a
 * CreateTaskPushNotificationConfigRequest with its `configId`, or the body itself.
 */
function pushConfigOf(given: JsonObject): JsonObject {
  const request = member(given, 'config');
  const outer = isJsonObject(request) ? request : given;
  const inner = member(outer, 'pushNotificationConfig');
  const config = isJsonObject(inner) ? inner : outer;
  const configId = member(given, 'configId');
  return configId === undefined || member(config, 'id') ? config : { ...config, id: configId };
}
