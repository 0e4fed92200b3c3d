import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { timeoutSignal, raceSignal } from '../../kernel/abort.js';

/** Runs work with a timeout in milliseconds. Throws `remote_timeout`, and `canceled` when the caller leaves first. */
export async function withTimeout<Result>(
  ctx: CallContext,
  ms: number,
  work: (within: CallContext) => Promise<Result>,
): Promise<Result> {
  const timeout = timeoutSignal(ms, [ctx.signal]);
  const { signal } = timeout;
  const timeoutError = (): RialtoError =>
    ctx.signal?.aborted
      ? new RialtoError('canceled')
      : new RialtoError('remote_timeout', { message: 'the MCP server did not answer in time' });
  try {
    return await raceSignal(signal, work({ ...ctx, signal }), timeoutError);
  } finally {
    timeout.end();
  }
}
