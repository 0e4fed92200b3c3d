import { isJsonObject, type Json } from '../../../kernel/json.js';
import { percentDecoded } from '../../../kernel/text.js';
import { invalidParams } from '../request/decoding.js';
import type { DecodeOptions, OperationNamed, OperationValues } from '../dialect.js';
import type { A2aVersion, StreamResponse } from '../model.js';
import type { Decoded, OperationName } from '../request/operations.js';
import { queryParams } from './rest-query.js';
import { paramsOf, v03Routes, v1Routes, type RestRoute } from './rest-routes.js';
import { decode as decodeNewer } from '../v1/decode.js';
import { encodeEvent as encodeNewerEvent, encodeResult as encodeNewerResult } from '../v1/encode.js';
import { encodeProtoEvent, encodeProtoResult } from '../v03/proto.js';
import { decodeRestParams } from '../v03/rest.js';

/** A matched HTTP+JSON request (v1.0 section 11, v0.3 section 3.2.3): its operation and the parameters in its path. */
export interface RestMatch {
  readonly version: A2aVersion;
  readonly name: OperationName;
  /** The parameters in the path: the ids, decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly tenant?: string;
  /** True when the answer is an event stream. */
  readonly stream: boolean;
  /**
   * 201 for a created configuration, 204 without a body for a deleted one, as in the official SDK; 200 for all others.
   */
  readonly successStatus: 200 | 201 | 204;
}

/** The path is known, but has other methods. */
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
 * Matches the path behind the base url of an agent, without the query, to an operation. `/v1/…` is v0.3. Undefined for
 * an unknown path and for one that is not percent-encoded UTF-8. One trailing slash is ignored.
 */
export function matchRest(method: string, path: string): RestMatch | RestMismatch | undefined {
  const segments = (path.endsWith('/') ? path.slice(0, -1) : path).split('/').slice(1);
  const [first = '', ...rest] = segments;
  if (first === 'v1') return find(v03Routes, method, rest);
  const found = find(v1Routes, method, segments);
  if (found) return found;
  const tenant = percentDecoded(first);
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
 * Decodes the parameters of a matched request: those of the body for a POST, otherwise those of the query. The path
 * overrides both. An absent body counts as empty.
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

/** Encodes the body of an answer; undefined when there is none (204). v0.3 uses the JSON of its proto here. */
export function encodeRestResult<Name extends OperationName>(
  version: A2aVersion,
  operation: OperationNamed<Name>,
  value: OperationValues[Name],
): Json | undefined {
  if (operation.name === 'DeleteTaskPushNotificationConfig') return undefined;
  return version === '0.3' ? encodeProtoResult(operation, value) : encodeNewerResult(operation, value);
}

/** Encodes the data of one frame of a stream, without an envelope. */
export function encodeRestEvent(version: A2aVersion, event: StreamResponse): Json {
  return version === '0.3' ? encodeProtoEvent(event) : encodeNewerEvent(event);
}
