import { isJsonObject, type Json } from '../../../kernel/json.js';
import { invalidParams } from '../request/decoding.js';
import type { DecodeOptions, OperationNamed, OperationValues } from '../dialect.js';
import type { A2aVersion, StreamResponse } from '../model.js';
import type { Decoded, OperationName } from '../request/operations.js';
import { queryParams } from './rest-query.js';
import { paramsOf, unescaped, v03Routes, v1Routes, type RestRoute } from './rest-routes.js';
import { decode as decodeNewer } from '../v1/decode.js';
import { encodeEvent as encodeNewerEvent, encodeResult as encodeNewerResult } from '../v1/encode.js';
import { encodeProtoEvent, encodeProtoResult } from '../v03/proto.js';
import { decodeRestParams } from '../v03/rest.js';

/** A request of HTTP+JSON (v1.0 section 11, v0.3 section 3.2.3) by its method and path. */
export interface RestMatch {
  readonly version: A2aVersion;
  readonly name: OperationName;
  /** What the path says: the ids, decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly tenant?: string;
  /** Answered by an event stream. */
  readonly stream: boolean;
  /** A created configuration is 201, a deleted one 204 without a body, as the official SDK has it; the rest 200. */
  readonly successStatus: 200 | 201 | 204;
}

/** The path is known and the method is not one of these. */
export interface RestMismatch {
  readonly allow: readonly string[];
}

const bodies: ReadonlySet<OperationName> = new Set<OperationName>([
  'SendMessage',
  'SendStreamingMessage',
  'CancelTask',
  'SubscribeToTask',
  'CreateTaskPushNotificationConfig',
]);

/**
 * What follows the base url of an agent, without the query, to an operation. `/v1/…` is v0.3. Undefined for an unknown path, one that
 * is not percent-encoded UTF-8 included. One slash at the end does no harm.
 */
export function matchRest(method: string, path: string): RestMatch | RestMismatch | undefined {
  const segments = (path.endsWith('/') ? path.slice(0, -1) : path).split('/').slice(1);
  const [first = '', ...rest] = segments;
  if (first === 'v1') return find(v03Routes, method, rest);
  const found = find(v1Routes, method, segments);
  if (found) return found;
  const tenant = unescaped(first);
  return tenant ? find(v1Routes, method, rest, tenant) : undefined;
}

function find(
  routes: readonly RestRoute[],
  method: string,
  segments: readonly string[],
  tenant?: string,
): RestMatch | RestMismatch | undefined {
  for (const route of routes) {
    const params = paramsOf(route, segments);
    if (!params) continue;
    const name = Object.hasOwn(route.methods, method) ? route.methods[method] : undefined;
    return name ? matched(route.version, name, params, tenant) : { allow: Object.keys(route.methods) };
  }
  return undefined;
}

function matched(
  version: A2aVersion,
  name: OperationName,
  params: Record<string, string>,
  tenant: string | undefined,
): RestMatch {
  const stream = name === 'SendStreamingMessage' || name === 'SubscribeToTask';
  const successStatus =
    name === 'CreateTaskPushNotificationConfig' ? 201 : name === 'DeleteTaskPushNotificationConfig' ? 204 : 200;
  return { version, name, params, ...(tenant !== undefined && { tenant }), stream, successStatus };
}

/**
 * The parameters of a matched request: those of the body for a POST, else those of the query; the path wins over both. No body is an
 * empty one.
 */
export function decodeRest(
  { version, name, params, tenant }: RestMatch,
  query: URLSearchParams,
  body: Json | undefined,
  options: DecodeOptions = {},
): Decoded {
  const given = bodies.has(name) ? (body ?? {}) : queryParams(query);
  if (!isJsonObject(given)) return invalidParams([{ field: 'body', description: 'must be an object' }]);
  if (version === '0.3') return decodeRestParams(name, params, given, options);
  return decodeNewer(name, { ...given, ...params, ...(tenant !== undefined && { tenant }) });
}

/** The body of an answer; undefined where there is none (204). v0.3 speaks the JSON of its proto here. */
export function encodeRestResult<Name extends OperationName>(
  version: A2aVersion,
  operation: OperationNamed<Name>,
  value: OperationValues[Name],
): Json | undefined {
  if (operation.name === 'DeleteTaskPushNotificationConfig') return undefined;
  return version === '0.3' ? encodeProtoResult(operation, value) : encodeNewerResult(operation, value);
}

/** The data of one frame of a stream, without an envelope. */
export function encodeRestEvent(version: A2aVersion, event: StreamResponse): Json {
  return version === '0.3' ? encodeProtoEvent(event) : encodeNewerEvent(event);
}
