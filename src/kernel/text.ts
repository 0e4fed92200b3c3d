/** Percent-decodes a text; undefined when it has an incomplete escape or bytes that are not valid UTF-8. */
export function percentDecoded(text: string): string | undefined {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/**
 * Removes the given characters from the end of a text in one pass; the pattern `/x+$/` would start again at each of
 * them.
 */
export function trimEnd(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text[end - 1]!)) end--;
  return text.slice(0, end);
}
