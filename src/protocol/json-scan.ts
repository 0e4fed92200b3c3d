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

/** Escapes of a string that are read at once. */
const maxEscapes = 1_000;

/** Does the same for a string with few escapes; undefined for one with many, which takes long. */
export function endOfShortText(text: string, start: number): number | undefined {
  let end = start;
  for (let escapes = 0; escapes < maxEscapes; escapes++) {
    end = text.indexOf('"', end + 1);
    if (end < 0) return text.length;
    let before = end;
    while (text.charCodeAt(before - 1) === backslash) if (end - --before > maxEscapes) return undefined;
    if ((end - before) % 2 === 0) return end;
  }
  return undefined;
}

/** Does the same with pauses, for a string with any number of escapes. */
export function* endOfLongText(text: string, start: number, pauses: ScanPauses): Generator<void, number> {
  for (let index = start + 1; index < text.length; index++) {
    if (pauses.isDue(index)) yield;
    const code = text.charCodeAt(index);
    if (code === quote) return index;
    if (code === backslash) index++;
  }
  return text.length;
}

/** True for white space of JSON. */
export function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
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

/** Characters that a scan reads between two pauses. */
const scannedAtOnce = 65_536;

/** Decides where a scan pauses, so that other work can run meanwhile. */
export class ScanPauses {
  private next = scannedAtOnce;

  /** True once for each 65,536 characters. */
  isDue(index: number): boolean {
    if (index <= this.next) return false;
    this.next = index + scannedAtOnce;
    return true;
  }
}

/**
 * Tests a text for a pattern, with pauses.
 * @param longest characters of the longest match, so that no pause cuts one.
 */
export function* testing(pattern: RegExp, text: string, longest: number): Generator<void, boolean> {
  for (let from = 0; from < text.length; from += scannedAtOnce) {
    if (from > 0) yield;
    if (pattern.test(text.slice(from, from + scannedAtOnce + longest))) return true;
  }
  return false;
}
