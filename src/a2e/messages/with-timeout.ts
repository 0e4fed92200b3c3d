import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { timeoutSignal, raceSignal } from '../../kernel/abort.js';

/** What the work comes to within a time. Throws `remote_timeout`, and `canceled` when the caller goes before. */
export async function withTimeout<Result>(
  ctx: CallContext,
  ms: number,
  work: (within: CallContext) => Promise<Result>,
): Promise<Result> {
  const patience = timeoutSignal(ms, [ctx.signal]);
  const { signal } = patience;
  const late = (): RialtoError =>
    ctx.signal?.aborted
      ? new RialtoError('canceled')
      : new RialtoError('remote_timeout', { message: 'the MCP server did not answer in time' });
  try {
    return await raceSignal(signal, work({ ...ctx, signal }), late);
  } finally {
    patience.end();
  }
}
