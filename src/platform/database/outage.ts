import { RialtoError } from '../../kernel/errors.js';

/** SQLSTATE classes of a server that cannot work now: connection, rollback, resources, operator, system; and a lock that was waited for. */
const passingStates = /^(08|40|53|57|58)|^55P03$/;
const brokenLines = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOENT']);
/** What node-postgres and its pool say without a code. */
const brokenWords =
  /^(Connection terminated|Query read timeout|timeout exceeded when trying to connect|Client has encountered a connection error)/;

/** What a statement threw: `unavailable` when the server is away or busy, for the same request may succeed later (F20, F21, F23). */
export function statementError(error: unknown): unknown {
  const fault = (error as { driverError?: unknown } | undefined)?.driverError ?? error;
  if (!(fault instanceof Error) || fault instanceof RialtoError) return error;
  const { code = '', message } = fault as Error & { code?: string };
  const isPassing =
    (code.length === 5 && passingStates.test(code)) || brokenLines.has(code) || brokenWords.test(message);
  return isPassing ? new RialtoError('unavailable', { message: 'the database is not available', cause: error }) : error;
}
