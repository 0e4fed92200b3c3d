/**
 * While the work runs, no timer of this process goes off that has so long to go or longer: what ends then was not cut off when its time
 * was over.
 */
export async function withoutTimers<Result>(leastMs: number, work: () => Promise<Result>): Promise<Result> {
  const start = globalThis.setTimeout;
  const longestMs = 2_147_483_647;
  const patient = (act: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) =>
    ms < leastMs ? start(act, ms, ...given) : start(act, longestMs, ...given).unref();
  const spy = jest.spyOn(globalThis, 'setTimeout').mockImplementation(patient as typeof setTimeout);
  try {
    return await work();
  } finally {
    spy.mockRestore();
  }
}
