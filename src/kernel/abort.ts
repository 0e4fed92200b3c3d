/**
 * Aborts after a time, or with the first of several signals; `end` when nobody waits any more. AbortSignal.any loses what nothing else
 * holds, a timeout above all (Node 20).
 */
export function timeoutSignal(
  waitMs: number,
  signals: readonly (AbortSignal | undefined)[],
): { signal: AbortSignal; end: () => void } {
  const over = new AbortController();
  const abort = (): void => over.abort();
  const timer = setTimeout(abort, waitMs);
  for (const signal of signals) {
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  }
  const end = (): void => {
    clearTimeout(timer);
    for (const signal of signals) signal?.removeEventListener('abort', abort);
  };
  return { signal: over.signal, end };
}

/** What `work` comes to, unless the signal comes first: then it goes on unheard. */
export function raceSignal<Result>(signal: AbortSignal, work: Promise<Result>, late: () => Error): Promise<Result> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(late());
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp, { once: true });
    const settled = (): void => signal.removeEventListener('abort', giveUp);
    void work.then(resolve, reject).finally(settled);
  });
}
