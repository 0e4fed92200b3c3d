import { RialtoError } from '../../kernel/errors.js';
import { RefusedUpgrade } from '../../platform/http/outbound/safe-socket.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { parseJson } from '../../protocol/jsonrpc.js';

/** What a method of the client rejects with: the gateway's code, or one of the client's own. */
export class A2EClientError extends Error {
  /** One of the `mcp_` codes, or `a2e_timeout`, `a2e_canceled`, `a2e_connection`, `a2e_refused` (not let in), `a2e_invalid` (no such argument, or answer). */
  readonly code: string;
  /** Whether the same may succeed later. */
  readonly retryable: boolean;
  readonly data?: JsonObject;

  constructor(code: string, message: string, more: { retryable?: boolean; data?: JsonObject; cause?: unknown } = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = 'A2EClientError';
    this.code = code;
    this.retryable = more.retryable ?? false;
    this.data = more.data;
  }
}

/** The `error` of a reply. */
export function errorOfReply(error: Json | undefined): A2EClientError {
  const { code, message, retryable, data } = isJsonObject(error) ? error : ({} as JsonObject);
  return new A2EClientError(
    typeof code === 'string' ? code : 'mcp_protocol_error',
    typeof message === 'string' ? message : 'the gateway refused',
    { retryable: retryable === true, ...(isJsonObject(data) && { data }) },
  );
}

/** An answer of HTTP that let no message in; the same again helps for 408, 425, 429 and 5xx alone. @param body a problem document, or anything. */
export function refusedBy(status: number, body: string, cause?: unknown): A2EClientError {
  const parsed = parseJson(body);
  const { detail, title } = parsed.ok && isJsonObject(parsed.value) ? parsed.value : ({} as JsonObject);
  const told = detail ?? title;
  const message = typeof told === 'string' ? told : `the gateway answered HTTP ${status}`;
  const retryable = passing.has(status) || status >= 500;
  const more = { retryable, data: { status }, cause };
  return new A2EClientError(retryable ? 'a2e_connection' : 'a2e_refused', message, more);
}

const passing: ReadonlySet<number> = new Set([408, 425, 429]);

/** Whatever a transport threw. */
export function asClientError(thrown: unknown): A2EClientError {
  if (thrown instanceof A2EClientError) return thrown;
  const { code, message, data, cause } = RialtoError.from(thrown);
  const body = cause instanceof RefusedUpgrade ? cause.body : '';
  if (typeof data?.upstreamStatus === 'number') return refusedBy(data.upstreamStatus, body, thrown);
  if (code === 'remote_timeout') return new A2EClientError('a2e_timeout', message, { retryable: true, cause: thrown });
  if (code === 'url_not_allowed') return new A2EClientError('a2e_refused', message, { cause: thrown });
  return new A2EClientError('a2e_connection', message, { retryable: true, cause: thrown });
}
