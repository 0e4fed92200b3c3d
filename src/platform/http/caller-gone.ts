import type { DoorResponse } from './http.types.js';

/**
 * Returns a signal that aborts when the caller disconnects before its answer was written; after a complete answer it
 * never aborts. The signal is created at the first use: most requests never wait, and a signal costs more than
 * everything else they would do with it.
 */
export function whenGone(response: DoorResponse): () => AbortSignal {
  let signal: AbortSignal | undefined;
  return () => (signal ??= signalOf(response));
}

function signalOf(response: DoorResponse): AbortSignal {
  const gone = new AbortController();
  const closed = (): void => {
    if (!isSent(response)) gone.abort();
  };
  if (response.destroyed) closed();
  else response.once('close', closed);
  return gone.signal;
}

/** Resolves to true when the whole answer was sent, to false when its connection broke before that. */
export function whenAnswered(response: DoorResponse): Promise<boolean> {
  if (response.destroyed) return Promise.resolve(isSent(response));
  return new Promise((resolve) => {
    const end = (): void => resolve(isSent(response));
    response.once('finish', end).once('close', end);
  });
}

/** Node 20 and 22 also finish an answer when its connection breaks. A reply of gRPC has no request. */
function isSent({ writableFinished, req }: Pick<DoorResponse, 'writableFinished'> & Partial<DoorResponse>): boolean {
  return writableFinished && !req?.socket.errored;
}
