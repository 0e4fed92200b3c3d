import type { Part } from './model.js';

/**
 * The words of an artifact, one text a line. Texts that follow each other are one text: chunks that were appended arrive as parts of
 * their own (v1.0 section 4.2.2), also in the middle of a word.
 *
 * @param shown a part that is no text, as text; absent where it is not shown.
 */
export function artifactText(
  parts: readonly Part[],
  shown: (part: Part) => string | undefined = () => undefined,
): string {
  const lines: string[] = [];
  let isOpen = false;
  for (const part of parts) {
    if (part.text !== undefined && isOpen) lines.push(`${lines.pop()!}${part.text}`);
    else lines.push(...(part.text === undefined ? [shown(part)] : [part.text]).filter((line) => line !== undefined));
    isOpen = part.text !== undefined;
  }
  return lines.filter((line) => line !== '').join('\n');
}

/** The words of several artifacts, each on lines of its own. */
export function artifactsText(artifacts: readonly { readonly parts: readonly Part[] }[]): string {
  return artifacts
    .map(({ parts }) => artifactText(parts))
    .filter((text) => text !== '')
    .join('\n');
}
