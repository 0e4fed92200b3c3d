/* Helpers for code that scans JSON text before JSON.parse reads it. */

export const quote = 0x22;
export const minus = 0x2d;
export const letterE = 0x65;
const backslash = 0x5c;

/** Returns the end of the string that begins at `start`: the next quote that is not escaped. */
export function endOfText(text: string, start: number): number {
  let end = start;
  do {
    end = text.indexOf('"', end + 1);
    if (end < 0) return text.length;
  } while (isEscaped(text, end));
  return end;
}

export function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/**
 * True for a digit, a sign, a point or an exponent. `e` is also in `true` and `false`, but no number begins with it.
 */
export function isPartOfNumber(code: number): boolean {
  return isDigit(code) || code === minus || code === 0x2e || code === 0x2b || (code | 0x20) === letterE;
}

function isEscaped(text: string, index: number): boolean {
  let before = index;
  while (text.charCodeAt(before - 1) === backslash) before--;
  return (index - before) % 2 === 1;
}
