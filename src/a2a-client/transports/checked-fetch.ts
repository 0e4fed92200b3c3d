import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { parseExact } from '../../protocol/exact-integers.js';
import { parseResponse } from '../../protocol/jsonrpc.js';
import { formatEvent } from '../../protocol/sse.js';
import type { Endpoint } from './endpoint-choice.js';
import { carry } from './carried.js';
import { checkedEvents, eventStream, type StreamLimits } from './checked-events.js';
import { completed, faultOfReply, withKnownParts } from './reply-shape.js';
import { faultFacts, notA2a, refused, restDetails, restFault, type RemoteFault } from './wire-error.js';
import { ByteCollector } from '../../platform/byte-collector.js';
import { parseLongJson, stringifyShielded } from '../../platform/turns.js';

type Fetch = typeof globalThis.fetch;

/** Rules for one SDK request. */
export interface WireRules extends StreamLimits {
  readonly endpoint: Endpoint;
  readonly maxReplyBytes: number;
  /** True when a good answer is a task or a message; other answers, such as lists, are only checked to be JSON. */
  readonly expectsReply: boolean;
  /** Adds members that the SDK does not know to the params of a v0.3 JSON-RPC request; v1.0 has no place for them. */
  readonly amend?: (params: JsonObject) => void;
}

/**
 * Returns a `fetch` for the SDK that accepts only valid answers. It checks statuses, envelopes, ids and shapes, and
 * reports failures with the gateway's error codes, so that the SDK's readers never get a hostile answer (RE-28, RE-29,
 * RE-89). Throws RialtoErrors, also from the body of a stream. One JSON reply to a stream request is read as a stream
 * of one event.
 */
export function checkedFetch(send: Fetch, rules: WireRules): Fetch {
  const isRpc = rules.endpoint.binding === 'JSONRPC';
  const prepare = preparing(rules.endpoint);
  return async (input, init) => {
    const amend = rules.endpoint.version === '0.3' ? rules.amend : undefined;
    const body = isRpc ? amended(init?.body, amend) : init?.body;
    const response = await send(input, { ...init, body });
    if (!response.ok) throw await httpFailure(response, rules);
    const type = response.headers.get('content-type') ?? '';
    const requestId = isRpc ? idOf(body) : undefined;
    if (type.startsWith('text/event-stream') && response.body) {
      const unwrapped = (json: Json): Json => unwrap(json, requestId, rules);
      return eventStream(checkedEvents(response.body, { ...rules, unwrap: unwrapped, prepare }));
    }
    if (response.status === 204) return response;
    const text = await readText(response, rules.maxReplyBytes);
    const reply = unwrap(await parseAnswer(text), requestId, rules);
    const fault = rules.expectsReply ? faultOfReply(resultOf(reply, isRpc)) : undefined;
    if (fault !== undefined) throw notA2a(`neither a task nor a message: ${fault}`);
    const answer = await stringifyShielded(rules.expectsReply ? prepare(reply) : reply);
    if (!wantsEvents(init)) return new Response(answer, { headers: { 'content-type': 'application/json' } });
    return new Response(formatEvent({ data: answer }), { headers: { 'content-type': 'text/event-stream' } });
  };
}

/** Returns the function that prepares a valid answer for the SDK's reader of this version and binding. */
function preparing({ binding, version }: Endpoint): (reply: Json) => Json {
  const isRpc = binding === 'JSONRPC';
  if (version === '0.3') return isRpc ? (reply) => reply : carry;
  return (reply) => {
    withKnownParts(resultOf(reply, isRpc));
    return reply;
  };
}

/** Returns the JSON-RPC envelope or the bare body, with a completed result; throws the error of the remote agent. */
function unwrap(json: Json, requestId: Json | undefined, { endpoint }: WireRules): Json {
  if (endpoint.binding !== 'JSONRPC') return json;
  const response = parseResponse(json);
  if (!response.ok) throw notA2a(response.reason);
  if ('error' in response) throw refused(response.error);
  if (response.id !== requestId) throw notA2a('the id is not that of the request');
  const result = endpoint.version === '0.3' ? completed(response.result) : response.result;
  return { jsonrpc: '2.0', id: response.id, result };
}

function resultOf(reply: Json, isRpc: boolean): Json {
  return isRpc && isJsonObject(reply) ? (reply.result ?? null) : reply;
}

async function httpFailure(response: Response, { endpoint, maxReplyBytes }: WireRules): Promise<RialtoError> {
  const { status } = response;
  const text = await readText(response, maxReplyBytes).catch(() => '');
  const json = await parseLongJson(text);
  const retryAfter = response.headers.get('retry-after');
  const facts = { httpStatus: status, ...(retryAfter !== null && { retryAfter }) };
  const fault = json.ok ? faultOf(json.value, endpoint) : undefined;
  if (fault && endpoint.binding !== 'JSONRPC') return refused(fault, facts);
  const message = `the remote agent answered HTTP ${status}`;
  return new RialtoError('remote_transport', {
    message,
    data: { ...facts, ...(fault && faultFacts(fault)) },
    cause: fault ?? { data: restDetails(json.ok ? json.value : undefined) },
  });
}

function faultOf(body: Json, { binding }: Endpoint): RemoteFault | undefined {
  if (binding !== 'JSONRPC') return restFault(body);
  const response = parseResponse(body);
  return response.ok && 'error' in response ? response.error : undefined;
}

async function readText(response: Response, maxBytes: number): Promise<string> {
  const body = new ByteCollector();
  for await (const chunk of response.body ?? []) {
    body.add(chunk as Uint8Array);
    if (body.size > maxBytes) throw notA2a('the reply is too large');
    if (body.isShredded) throw notA2a('the reply has too many tiny chunks');
  }
  return body.bytes.toString('utf8');
}

async function parseAnswer(text: string): Promise<Json> {
  const json = await parseLongJson(text);
  if (!json.ok) throw notA2a(json.reason);
  return json.value;
}

function amended(body: unknown, amend: WireRules['amend']): string | undefined {
  if (typeof body !== 'string' || amend === undefined) return typeof body === 'string' ? body : undefined;
  const request = parseExact(body) as JsonObject;
  if (isJsonObject(request.params)) amend(request.params);
  return JSON.stringify(request);
}

function idOf(body: unknown): Json | undefined {
  return typeof body === 'string' ? (parseExact(body) as { id?: Json }).id : undefined;
}

function wantsEvents(init: Parameters<Fetch>[1]): boolean {
  return new Headers(init?.headers).get('accept') === 'text/event-stream';
}
