import type { DetailedError } from '@cedar-policy/cedar-wasm/nodejs';

/** Error that ended Cedar. After a trap its WebAssembly instance can answer no call of this process. */
let lost: string | undefined;

/** Returns the error that ended Cedar; undefined while it works. */
export function cedarLoss(): string | undefined {
  return lost;
}

/**
 * Runs a call into Cedar. An error gives the fallback; a trap is stored for `cedarLoss`. After a trap no call runs any
 * more: Cedar was seen to loop endlessly after a dozen traps, which blocks the process.
 */
export function guarded<Result>(run: () => Result, fallback: (why: string) => Result): Result {
  if (lost !== undefined) return fallback(`the policy engine stopped: ${lost}`);
  try {
    return run();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    if (isTrap(error)) lost = why;
    return fallback(why);
  }
}

/**
 * Returns whether an error is a trap. Both kinds unwind past Cedar without freeing its stack. Compares names, because
 * a trap of another realm has another class.
 */
function isTrap(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.name === 'RuntimeError' || (error.name === 'RangeError' && error.message.includes('call stack'));
}

/** Creates an error in the form of Cedar errors. */
export function cedarError(message: string): DetailedError {
  return { message, help: null, code: null, url: null, severity: null };
}

/**
 * Returns true when all strings in a value, keys too, are well-formed Unicode. Cedar throws on a lone surrogate, and
 * each throw leaks some of its stack: about 1,500 of them end the instance, so such strings must not reach it.
 */
export function isWellFormedDeep(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every(isWellFormedDeep);
  for (const [key, child] of Object.entries(value)) if (!key.isWellFormed() || !isWellFormedDeep(child)) return false;
  return true;
}
