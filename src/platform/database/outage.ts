import { types } from 'node:util';
import { RialtoError } from '../../kernel/errors.js';

/** SQLSTATE classes of a server that cannot work now: connection, rollback, resources, operator, system; a lock that was waited for; read-only. */
const passingStates = /^(08|40|53|57|58)|^(55P03|25006)$/;
/** Most outages are over by then: a restart, a failover. */
const retryAfterSeconds = 5;
const brokenLines = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOENT']);
/** What node-postgres and its pool say without a code. */
const brokenWords =
  /^(Connection terminated|Query read timeout|timeout exceeded when trying to connect|Client has encountered a connection error|Query runner already released)/;

/** What a statement threw: `unavailable` when the server is away or busy, for the same request may succeed later (F20, F21, F23, F25). */
export function statementError(error: unknown): unknown {
  const fault = (error as { driverError?: unknown } | undefined)?.driverError ?? error;
  if (!types.isNativeError(fault) || fault instanceof RialtoError) return error;
  const { code = '', message } = fault as Error & { code?: string };
  const isPassing =
    (code.length === 5 && passingStates.test(code)) || brokenLines.has(code) || brokenWords.test(message);
  return isPassing ? new DatabaseAway(error) : error;
}

/** The one answer to this cause, whichever statement met it (R4). */
class DatabaseAway extends RialtoError {
  constructor(cause: unknown) {
    super('unavailable', { message: 'the database is not available', data: { retryAfterSeconds }, cause });
  }
}

/** SQLSTATE of a server that ends its connections, beside what a line says that breaks. */
const endedStates = /^(08|57P0)/;

/** Whether a line broke under a statement: nobody heard what became of it, and another line may work at once. Silence and refusal are none. */
export function isLineBroken(error: unknown): boolean {
  const seen = error instanceof RialtoError ? error.cause : error;
  const fault = (seen as { driverError?: unknown } | undefined)?.driverError ?? seen;
  if (!types.isNativeError(fault)) return false;
  const { code = '', message } = fault as Error & { code?: string };
  return endedStates.test(code) || brokenLines.has(code) || /^(Connection terminated|Client has)/.test(message);
}

/** Whether the server itself said no, and goes on: then nothing of the statement was committed, and everybody knows it. */
export function isRefusal(error: unknown): boolean {
  const fault = error instanceof RialtoError ? error.cause : error;
  const { code = '', severity } = (fault ?? {}) as { code?: string; severity?: string };
  return severity !== undefined && !endedStates.test(code);
}

/** Whether what failed was the database, which says nothing about the work that needed it. */
export function isDatabaseAway(error: unknown): boolean {
  return error instanceof DatabaseAway;
}
