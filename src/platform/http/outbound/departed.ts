/** Errors of requests that had gone out, at least in part. */
const departed = new WeakSet<object>();
const maxCauses = 6;

/** Remembers of an error, and of its cause, that the request may have reached its receiver before. */
export function markDeparted(error: Error): void {
  departed.add(error);
  if (typeof error.cause === 'object' && error.cause !== null) departed.add(error.cause);
}

/** True when what was sent may have arrived although it failed; false when nothing can have left. */
export function mayHaveArrived(error: unknown): boolean {
  let next = error;
  for (let depth = 0; depth < maxCauses && typeof next === 'object' && next !== null; depth++) {
    if (departed.has(next)) return true;
    next = (next as { cause?: unknown }).cause;
  }
  return false;
}
