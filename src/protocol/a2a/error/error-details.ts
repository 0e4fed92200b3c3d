import { errorCodes, type RialtoError } from '../../../kernel/errors.js';
import type { Json, JsonObject } from '../../../kernel/json.js';
import { errorRows, type ErrorRow } from './error-table.js';

const typeUrl = 'type.googleapis.com/google.rpc.';
const a2aDomain = 'a2a-protocol.org';
const ownDomain = 'rialto';

/**
 * Builds the google.rpc details of an error in JSON (v1.0 sections 9.5 and 11.6), the same on every binding: ErrorInfo
 * with the reason and the facts as texts, BadRequest with the violations, and RetryInfo when the time to wait is known.
 * Without ErrorInfo, RequestInfo has the request id. The details of an error that is not public have only that id.
 */
export function errorDetails(error: RialtoError, requestId: string | undefined): JsonObject[] {
  const { reason }: ErrorRow = errorRows[error.code];
  const isPublic = errorCodes[error.code].public;
  const details: JsonObject[] = [];
  if (reason !== 'none') details.push(errorInfo(error, reason, requestId));
  if (isPublic && error.violations && error.violations.length > 0) {
    const fieldViolations = error.violations.map(({ field, description }) => ({ field, description }));
    details.push({ '@type': `${typeUrl}BadRequest`, fieldViolations });
  }
  const retryAfter = error.data?.retryAfterSeconds;
  if (isPublic && typeof retryAfter === 'number') {
    details.push({ '@type': `${typeUrl}RetryInfo`, retryDelay: `${retryAfter}s` });
  }
  if (reason === 'none' && requestId !== undefined) details.push({ '@type': `${typeUrl}RequestInfo`, requestId });
  return details;
}

function errorInfo(error: RialtoError, reason: string | undefined, requestId: string | undefined): JsonObject {
  const metadata = {
    ...(errorCodes[error.code].public && { ...texts(error.data), ...texts({ hint: error.hint }) }),
    ...texts({ requestId }),
  };
  return {
    '@type': `${typeUrl}ErrorInfo`,
    reason: reason ?? error.code.toUpperCase(),
    domain: reason === undefined ? ownDomain : a2aDomain,
    ...(Object.keys(metadata).length > 0 && { metadata }),
  };
}

/** Converts facts to the string map of ErrorInfo; values that are not strings are written as JSON. */
function texts(facts: Record<string, unknown> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(facts).flatMap(([name, fact]) => {
      const text = typeof fact === 'string' ? fact : (JSON.stringify(fact) as string | undefined);
      return text === undefined ? [] : [[name, text]];
    }),
  );
}

/** Returns the text of an error for a person: its message, or only the title when the error is not public. */
export function errorMessage(error: RialtoError): string {
  const { title, public: isPublic } = errorCodes[error.code];
  return isPublic ? error.message : title;
}

/** Returns the details as the `data` of a JSON-RPC error; undefined when there are none. */
export function errorData(error: RialtoError, requestId: string | undefined): Json | undefined {
  const details = errorDetails(error, requestId);
  return details.length > 0 ? details : undefined;
}
