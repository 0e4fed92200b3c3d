import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { parseMessage, peekText, writeMessage, type Schema } from '../protobuf/codec.js';
import { int, listOf, mapOf, text } from '../protobuf/fields.js';
import { invalidParams } from './request/decoding.js';
import type { DecodeOptions, OperationNamed, OperationValues } from './dialect.js';
import type { GrpcStatus } from './error/errors.js';
import type { A2aVersion, StreamResponse } from './model.js';
import type { Decoded, OperationName } from './request/operations.js';
import { decode as decodeNewer } from './v1/decode.js';
import { encodeEvent, encodeResult } from './v1/encode.js';
import * as newer from './v1/grpc.js';
import * as older from './v03/grpc.js';
import { encodeProtoEvent, encodeProtoResult } from './v03/proto.js';

/*
 * The gRPC binding (v1.0 section 10, v0.3 section 3.2.2): both services with their rpcs. A request is converted to the
 * JSON of its proto and then read by the same code as for REST and JSON-RPC, so all bindings have the same rules.
 * Answers take the reverse path.
 */

/** One rpc of one of the two services. */
export interface GrpcMethod {
  readonly version: A2aVersion;
  readonly name: OperationName;
  readonly service: string;
  readonly rpc: string;
  /** True when the answer is a stream of messages. */
  readonly stream: boolean;
  /**
   * Returns the `tenant` of a request, which identifies the agent, without reading the whole request; undefined in
   * v0.3, which has no tenants.
   */
  tenantOf(bytes: Buffer): string | undefined;
  /** Decodes the bytes of a request to an operation. Never throws. */
  decode(bytes: Buffer, options?: DecodeOptions): Decoded;
  /** Encodes the answer. */
  encode<Name extends OperationName>(operation: OperationNamed<Name>, value: OperationValues[Name]): Buffer;
  /** Encodes one message of a stream. */
  encodeEvent(event: StreamResponse): Buffer;
}

const streaming: ReadonlySet<OperationName> = new Set<OperationName>(['SendStreamingMessage', 'SubscribeToTask']);

export const grpcMethods: readonly GrpcMethod[] = [
  ...Object.entries(newer.messages).map(([rpc, { request, response }]): GrpcMethod => {
    const name = rpc as OperationName;
    return {
      ...{ version: '1.0', service: newer.service, rpc, name, stream: streaming.has(name) },
      tenantOf: (bytes) => request.tenant && peekText(request.tenant, bytes),
      decode: (bytes) => decodeMessage(request, bytes, (json) => decodeNewer(name, json)),
      encode: (operation, value) => write(response, encodeResult(operation, value)),
      encodeEvent: (event) => write(response, encodeEvent(event)),
    };
  }),
  ...Object.entries(older.rpcs).map(([rpc, { name, request, response }]): GrpcMethod => ({
    ...{ version: '0.3', service: older.service, rpc, name, stream: streaming.has(name) },
    tenantOf: () => undefined,
    decode: (bytes, options = {}) => decodeMessage(request, bytes, (json) => older.decodeRpc(name, json, options)),
    encode: (operation, value) => {
      const json = encodeProtoResult(operation, value);
      return write(response, name === 'GetExtendedAgentCard' ? older.protoCard(json as JsonObject) : json);
    },
    encodeEvent: (event) => write(response, encodeProtoEvent(event)),
  })),
];

function decodeMessage(schema: Schema, bytes: Buffer, decode: (json: JsonObject) => Decoded): Decoded {
  const message = parseMessage(schema, bytes);
  if (message.ok) return decode(message.value);
  return invalidParams([{ field: 'message', description: `cannot be read: ${message.reason}` }]);
}

function write(schema: Schema, json: Json): Buffer {
  return writeMessage(schema, isJsonObject(json) ? json : {});
}

const details: Readonly<Record<string, Schema>> = {
  ErrorInfo: { reason: text(1), domain: text(2), metadata: mapOf(3, 'text') },
  BadRequest: { fieldViolations: listOf(1, { field: text(1), description: text(2) }) },
  RetryInfo: { retryDelay: { number: 1, type: 'duration' } },
  RequestInfo: { requestId: text(1) },
};
const any: Schema = { typeUrl: text(1), value: { number: 2, type: 'bytes' } };
const rpcStatus: Schema = { code: int(1), message: text(2), details: listOf(3, any) };

/** Trailers must be small: clients accept 8 KiB of headers in total. */
const maxStatusBytes = 4_096;
const maxViolations = 16;

/**
 * Encodes a status as google.rpc.Status for `grpc-status-details-bin` (v1.0 section 10.6). Details that do not fit are
 * dropped, starting with the last.
 */
export function statusBytes({ code, message, details: all }: GrpcStatus): Buffer {
  const packed = all.map(withFewViolations).map(pack);
  for (let count = packed.length; count > 0; count--) {
    const bytes = writeMessage(rpcStatus, { code, message, details: packed.slice(0, count) });
    if (bytes.length <= maxStatusBytes) return bytes;
  }
  return writeMessage(rpcStatus, { code, message: message.slice(0, maxStatusBytes / 4) });
}

function withFewViolations(detail: JsonObject): JsonObject {
  const { fieldViolations } = detail;
  return Array.isArray(fieldViolations)
    ? { ...detail, fieldViolations: fieldViolations.slice(0, maxViolations) }
    : detail;
}

function pack(detail: JsonObject): JsonObject {
  const { '@type': type } = detail;
  const typeUrl = typeof type === 'string' ? type : '';
  const schema = details[typeUrl.slice(typeUrl.lastIndexOf('.') + 1)] ?? {};
  return { typeUrl, value: writeMessage(schema, detail).toString('base64') };
}
