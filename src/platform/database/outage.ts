import { types } from 'node:util';
import { RialtoError } from '../../kernel/errors.js';

/**
 * SQLSTATE classes and codes of a server that cannot work at the moment: connection, rollback, resources, operator,
 * system; lock timeout; read-only.
 */
const temporaryStates = /^(08|40|53|57|58)|^(55P03|25006)$/;
/** Most outages (a restart, a failover) are over after this time. */
const retryAfterSeconds = 5;
const brokenConnectionCodes = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOENT']);
/** Messages of node-postgres and its pool that have no code. */
const brokenConnectionMessages = [
  /^(Connection terminated|Query read timeout|Query runner already released)/,
  /^(timeout exceeded when trying to connect|Client has encountered a connection error)/,
];

/**
 * Translates the error of a statement: `unavailable` when the server cannot be reached or is busy, because the same
 * request may succeed later; every other error is returned unchanged.
 */
export function statementError(error: unknown): unknown {
  const fault = (error as { driverError?: unknown } | undefined)?.driverError ?? error;
  if (!types.isNativeError(fault) || fault instanceof RialtoError) return error;
  const { code = '', message } = fault as Error & { code?: string };
  const isTemporary =
    (code.length === 5 && temporaryStates.test(code)) ||
    brokenConnectionCodes.has(code) ||
    brokenConnectionMessages.some((pattern) => pattern.test(message));
  return isTemporary ? new DatabaseAway(error) : error;
}

/** The same error for every statement that meets an outage. */
class DatabaseAway extends RialtoError {
  constructor(cause: unknown) {
    super('unavailable', { message: 'the database is not available', data: { retryAfterSeconds }, cause });
  }
}

/**
 * SQLSTATE codes of a server that ends its connections; a broken connection also has messages and system error codes.
 */
const connectionEndStates = /^(08|57P0)/;

/**
 * True when the connection broke during a statement: its outcome is unknown, and another connection may work at once.
 * A timeout or a refusal is not a broken connection.
 */
export function isLineBroken(error: unknown): boolean {
  const reported = error instanceof RialtoError ? error.cause : error;
  const fault = (reported as { driverError?: unknown } | undefined)?.driverError ?? reported;
  if (!types.isNativeError(fault)) return false;
  const { code = '', message } = fault as Error & { code?: string };
  return (
    connectionEndStates.test(code) ||
    brokenConnectionCodes.has(code) ||
    /^(Connection terminated|Client has)/.test(message)
  );
}

/** True when the server itself refused the statement and keeps running: nothing of it was committed. */
export function isRefusal(error: unknown): boolean {
  const fault = error instanceof RialtoError ? error.cause : error;
  const { code = '', severity } = (fault ?? {}) as { code?: string; severity?: string };
  return severity !== undefined && !connectionEndStates.test(code);
}

/** True when the database failed, which says nothing about the work that needed it. */
export function isDatabaseAway(error: unknown): boolean {
  return error instanceof DatabaseAway;
}
