/** Errors of requests that were sent, at least in part. */
const departed = new WeakSet<object>();
const maxCauses = 6;

/** Records on an error, and on its cause, that the request may have reached its receiver before it failed. */
export function markDeparted(error: Error): void {
  departed.add(error);
  if (typeof error.cause === 'object' && error.cause !== null) departed.add(error.cause);
}

/** True when a failed request may still have arrived; false when no byte of it can have been sent. */
export function mayHaveArrived(error: unknown): boolean {
  let next = error;
  for (let depth = 0; depth < maxCauses && typeof next === 'object' && next !== null; depth++) {
    if (departed.has(next)) return true;
    next = (next as { cause?: unknown }).cause;
  }
  return false;
}
