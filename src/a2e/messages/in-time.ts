import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { patienceOf, unless } from '../../kernel/patience.js';

/** What the work comes to within a time. Throws `remote_timeout`, and `canceled` when the caller goes before. */
export async function inTime<Result>(
  ctx: CallContext,
  ms: number,
  work: (within: CallContext) => Promise<Result>,
): Promise<Result> {
  const patience = patienceOf(ms, [ctx.signal]);
  const { signal } = patience;
  const late = (): RialtoError =>
    ctx.signal?.aborted
      ? new RialtoError('canceled')
      : new RialtoError('remote_timeout', { message: 'the MCP server did not answer in time' });
  try {
    return await unless(signal, work({ ...ctx, signal }), late);
  } finally {
    patience.end();
  }
}
