import type { CallContext } from '../../kernel/call-context.js';
import { a2eCodeOf } from '../../protocol/a2e/errors.js';
import { withCallTimeout } from './call-timeout.js';

const caller = (signal?: AbortSignal): CallContext => ({ signal }) as CallContext;
const endless = (within: CallContext): Promise<never> =>
  new Promise((_, reject) => within.signal!.addEventListener('abort', () => reject(new Error('aborted'))));

describe('withCallTimeout', () => {
  it('AE-67 rejects as unavailable after the timeout, and aborts the work', async () => {
    let isStopped = false;
    const work = endlessly(() => (isStopped = true));
    const error: unknown = await withCallTimeout(caller(), 20, work).catch((thrown: unknown) => thrown);
    expect([a2eCodeOf(error, 'resource'), isStopped]).toEqual(['mcp_unavailable', true]);
  });

  it('is canceled when the caller leaves, and does not affect work that ends in time', async () => {
    const gone = new AbortController();
    const request = withCallTimeout(caller(gone.signal), 10_000, endless);
    gone.abort();
    await expect(request).rejects.toMatchObject({ code: 'canceled' });
    await expect(withCallTimeout(caller(), 10_000, () => Promise.resolve(7))).resolves.toBe(7);
  });
});

function endlessly(stopped: () => void) {
  return (within: CallContext): Promise<never> => {
    within.signal!.addEventListener('abort', stopped);
    return endless(within);
  };
}
