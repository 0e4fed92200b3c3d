/** Runs work while timers of at least `leastMs` do not fire. When the work ends, no such timeout has ended it. */
export async function withoutTimers<Result>(leastMs: number, work: () => Promise<Result>): Promise<Result> {
  const start = globalThis.setTimeout;
  const longestMs = 2_147_483_647;
  const delayed = (act: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) =>
    ms < leastMs ? start(act, ms, ...given) : start(act, longestMs, ...given).unref();
  const spy = jest.spyOn(globalThis, 'setTimeout').mockImplementation(delayed as typeof setTimeout);
  try {
    return await work();
  } finally {
    spy.mockRestore();
  }
}
