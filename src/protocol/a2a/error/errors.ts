import { RialtoError, type ErrorCode } from '../../../kernel/errors.js';
import type { JsonObject } from '../../../kernel/json.js';
import { jsonRpcCodes, type JsonRpcError } from '../../jsonrpc.js';
import { errorData, errorDetails, errorMessage } from './error-details.js';
import { errorRows, grpcCodes, type ErrorProfile, type ErrorRow, type GrpcName } from './error-table.js';
import type { A2aVersion } from '../model.js';

export type { ErrorProfile } from './error-table.js';

export interface ErrorOptions {
  /** Default `1.0.1`. */
  readonly profile?: ErrorProfile;
  readonly requestId?: string;
}

export interface RpcErrorOptions extends ErrorOptions {
  /** The code for a refused caller: -32001 on `/a2a` and `/_agent-native/a2a`, -32000 (the default) elsewhere. */
  readonly authCode?: -32001 | -32000;
  /** The code for a failure of the gateway: -32000 on `/_agent-native/a2a` (AN-51), -32603 (the default) elsewhere. */
  readonly failureCode?: -32603 | -32000;
}

export interface GrpcStatus {
  readonly code: number;
  readonly message: string;
  /** google.rpc messages in JSON form, for `grpc-status-details-bin`. */
  readonly details: JsonObject[];
}

const { internalError } = jsonRpcCodes;

/**
 * Converts a thrown value to the `error` of a JSON-RPC response (v1.0 section 9.5). `data`, when present, is a list of
 * google.rpc details; in v0.3 `data` is free-form, so v0.3 callers get the same list. A value that is not a RialtoError
 * becomes an internal error that shows only its title.
 */
export function jsonRpcError(
  thrown: unknown,
  { requestId, authCode = -32000, failureCode = internalError }: RpcErrorOptions = {},
): JsonRpcError {
  const error = RialtoError.from(thrown);
  const { rpc }: ErrorRow = errorRows[error.code];
  const code = rpc === 'auth' ? authCode : rpc === internalError ? failureCode : rpc;
  const data = errorData(error, requestId);
  return { code, message: errorMessage(error), ...(data !== undefined && { data }) };
}

// HTTP statuses for requests that were refused before their method ran.
const statusesOfTransport: ReadonlySet<number> = new Set([401, 403, 405, 413, 415, 429, 503]);

/**
 * Returns the HTTP status of a JSON-RPC response with this error: 200, except for errors that happen before the method
 * runs: authentication and authorization, an unknown agent, sizes, types, limits.
 */
export function jsonRpcStatus(code: ErrorCode): number {
  const { http }: ErrorRow = errorRows[code];
  return code === 'not_found' || statusesOfTransport.has(http) ? http : 200;
}

/**
 * Converts a thrown value to an HTTP+JSON answer: google.rpc.Status in v1.0 (section 11.6), the bare JSON-RPC error
 * object in v0.3.
 */
export function httpError(
  thrown: unknown,
  { version, profile = '1.0.1', ...options }: RpcErrorOptions & { readonly version: A2aVersion },
): { status: number; body: JsonObject } {
  const error = RialtoError.from(thrown);
  const { http, grpc } = mapped(error.code, profile);
  if (version === '0.3') return { status: http, body: { ...jsonRpcError(error, options) } };
  const details = errorDetails(error, options.requestId);
  return { status: http, body: { error: { code: http, status: grpc, message: errorMessage(error), details } } };
}

/** Converts a thrown value to the status of a gRPC call (v1.0 section 10.6). */
export function grpcStatus(thrown: unknown, { profile = '1.0.1', requestId }: ErrorOptions = {}): GrpcStatus {
  const error = RialtoError.from(thrown);
  const { grpc } = mapped(error.code, profile);
  return { code: grpcCodes[grpc], message: errorMessage(error), details: errorDetails(error, requestId) };
}

function mapped(code: ErrorCode, profile: ErrorProfile): { http: number; grpc: GrpcName } {
  const { http, grpc, older }: ErrorRow = errorRows[code];
  return profile === '1.0.0' ? { http: older?.http ?? http, grpc: older?.grpc ?? grpc } : { http, grpc };
}
