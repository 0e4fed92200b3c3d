import { RialtoError } from '../../kernel/errors.js';
import { RefusedUpgrade } from '../../platform/http/outbound/safe-socket.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { parseJson } from '../../protocol/jsonrpc.js';

/** Error of all client methods, with a code of the gateway or of the client. */
export class A2EClientError extends Error {
  /**
   * One of the `mcp_` codes, or `a2e_timeout`, `a2e_canceled`, `a2e_connection`, `a2e_refused` (the gateway refused
   * the connection), `a2e_invalid` (invalid argument or answer).
   */
  readonly code: string;
  /** Whether the same request may succeed later. */
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

/** Converts the `error` of a reply. */
export function errorOfReply(error: Json | undefined): A2EClientError {
  const { code, message, retryable, data } = isJsonObject(error) ? error : ({} as JsonObject);
  return new A2EClientError(
    typeof code === 'string' ? code : 'mcp_protocol_error',
    typeof message === 'string' ? message : 'the gateway refused the message without a reason',
    { retryable: retryable === true, ...(isJsonObject(data) && { data }) },
  );
}

/**
 * Converts an HTTP answer that refused a message or a connection. Only 408, 425, 429 and 5xx are retryable.
 *
 * @param body a problem document, or any other text.
 */
export function refusedBy(status: number, body: string, cause?: unknown): A2EClientError {
  const parsed = parseJson(body);
  const { detail, title } = parsed.ok && isJsonObject(parsed.value) ? parsed.value : ({} as JsonObject);
  const reason = detail ?? title;
  const message = typeof reason === 'string' ? reason : `the gateway answered HTTP ${status}`;
  const retryable = transientStatuses.has(status) || status >= 500;
  const more = { retryable, data: { status }, cause };
  return new A2EClientError(retryable ? 'a2e_connection' : 'a2e_refused', message, more);
}

const transientStatuses: ReadonlySet<number> = new Set([408, 425, 429]);

/** Converts an error that a transport threw. */
export function asClientError(thrown: unknown): A2EClientError {
  if (thrown instanceof A2EClientError) return thrown;
  const { code, message, data, cause } = RialtoError.from(thrown);
  const body = cause instanceof RefusedUpgrade ? cause.body : '';
  if (typeof data?.upstreamStatus === 'number') return refusedBy(data.upstreamStatus, body, thrown);
  if (code === 'remote_timeout') return new A2EClientError('a2e_timeout', message, { retryable: true, cause: thrown });
  if (code === 'url_not_allowed') return new A2EClientError('a2e_refused', message, { cause: thrown });
  return new A2EClientError('a2e_connection', message, { retryable: true, cause: thrown });
}
