/** A text without the characters of the given ones that it ends with, in one pass: `/x+$/` begins anew at each of them. */
export function trimEnd(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text[end - 1]!)) end--;
  return text.slice(0, end);
}
