import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { withTimeout } from '../../kernel/abort.js';

/** Runs work with a timeout in milliseconds. Throws `remote_timeout`, and `canceled` when the caller leaves first. */
export function withCallTimeout<Result>(
  ctx: CallContext,
  ms: number,
  work: (within: CallContext) => Promise<Result>,
): Promise<Result> {
  const timeoutError = (): RialtoError =>
    ctx.signal?.aborted
      ? new RialtoError('canceled')
      : new RialtoError('remote_timeout', { message: 'the MCP server did not answer in time' });
  return withTimeout(ms, [ctx.signal], (signal) => work({ ...ctx, signal }), timeoutError);
}
