import type { DoorResponse } from './http.types.js';

/**
 * What aborts when the caller goes away before its answer was written; an answer that was sent cancels nothing. It is made when
 * somebody first asks for it: most requests never wait, and a signal costs more than all they do with it.
 */
export function whenGone(response: DoorResponse): () => AbortSignal {
  let signal: AbortSignal | undefined;
  return () => (signal ??= signalOf(response));
}

function signalOf(response: DoorResponse): AbortSignal {
  const gone = new AbortController();
  const closed = (): void => {
    if (!response.writableFinished) gone.abort();
  };
  if (response.destroyed) closed();
  else response.once('close', closed);
  return gone.signal;
}

/** Resolves when the answer has left in full: true; or when its connection broke before: false. */
export function whenAnswered(response: DoorResponse): Promise<boolean> {
  if (response.destroyed) return Promise.resolve(response.writableFinished);
  return new Promise((resolve) => {
    response.once('finish', () => resolve(true));
    response.once('close', () => resolve(response.writableFinished));
  });
}
