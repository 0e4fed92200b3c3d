/**
 * Converts JSON as editors accept it (a byte order mark, `//` and block comments, a comma before a closing bracket)
 * to plain JSON. The extra characters become spaces, so that a parser reports the right line for any other error.
 * Runs in one pass.
 */
export function plainJson(text: string): string {
  const blanks: { start: number; end: number }[] = [];
  if (text.startsWith('\uFEFF')) blanks.push({ start: 0, end: 1 });
  /** The last comma, while only blanks and comments follow it. */
  let comma: { start: number; end: number } | undefined;
  for (let at = blanks.length; at < text.length;) {
    const char = text[at]!;
    const end = endOfToken(text, at);
    if (char === '/' && end > at + 1) blanks.push({ start: at, end });
    else if (char === ',') blanks.push((comma = { start: at, end: at }));
    else if (!isBlank(char)) {
      if (comma && (char === ']' || char === '}')) comma.end = comma.start + 1;
      comma = undefined;
    }
    at = end;
  }
  let copied = 0;
  const pieces = blanks.flatMap(({ start, end }) => {
    const before = text.slice(copied, start);
    copied = end;
    return [before, text.slice(start, end).replace(/[^\r\n]/g, ' ')];
  });
  return pieces.join('') + text.slice(copied);
}

/**
 * Returns the end of a string, a comment or any other single character. A string or comment that is not closed
 * reaches to the end.
 */
function endOfToken(text: string, start: number): number {
  if (text[start] === '"') return endOfString(text, start);
  if (text.startsWith('//', start)) {
    let end = start;
    while (end < text.length && text[end] !== '\n' && text[end] !== '\r') end++;
    return end;
  }
  if (!text.startsWith('/*', start)) return start + 1;
  const close = text.indexOf('*/', start + 2);
  return close === -1 ? text.length : close + 2;
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++)
    if (text[at] === '\\') at++;
    else if (text[at] === '"') return at + 1;
  return text.length;
}

function isBlank(char: string): boolean {
  return char === ' ' || char === '\t' || char === '\n' || char === '\r';
}
