import type { DetailedError } from '@cedar-policy/cedar-wasm/nodejs';

/** Why Cedar is gone, once it is: after a trap its WebAssembly instance answers nobody in this process. */
let lost: string | undefined;

/** Undefined while Cedar works, else what ended it. */
export function cedarLoss(): string | undefined {
  return lost;
}

/**
 * Runs a call into Cedar; what it throws becomes the fallback, and a trap is remembered for `cedarLoss`. Nothing runs
 * after one: Cedar was seen to spin for ever after a dozen, and the process with it (F46).
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

/** Both unwind past Cedar without giving its stack back. By name: a trap of another realm is another class. */
function isTrap(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.name === 'RuntimeError' || (error.name === 'RangeError' && error.message.includes('call stack'));
}

/** A Cedar error of our own making. */
export function cedarError(message: string): DetailedError {
  return { message, help: null, code: null, url: null, severity: null };
}

/**
 * True when every string inside, keys too, is well-formed Unicode. Cedar throws on a lone surrogate, and each throw leaks
 * a little of its stack: some 1,500 of them and the instance is lost, so nothing else may reach it.
 */
export function isWellFormedDeep(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every(isWellFormedDeep);
  for (const [key, child] of Object.entries(value)) if (!key.isWellFormed() || !isWellFormedDeep(child)) return false;
  return true;
}
