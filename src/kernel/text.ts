/**
 * Removes the given characters from the end of a text in one pass; the pattern `/x+$/` would start again at each of
 * them.
 */
export function trimEnd(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text[end - 1]!)) end--;
  return text.slice(0, end);
}
