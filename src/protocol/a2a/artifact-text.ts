import type { Part } from './model.js';

/**
 * Returns the text of an artifact, with a line break between texts that other parts separate. Adjacent texts form one
 * text: appended chunks arrive as separate parts (v1.0 section 4.2.2) and may split a word.
 *
 * @param shown returns the text for a part without text; undefined leaves the part out.
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

/** Returns the text of several artifacts, each on its own lines. */
export function artifactsText(artifacts: readonly { readonly parts: readonly Part[] }[]): string {
  return artifacts
    .map(({ parts }) => artifactText(parts))
    .filter((text) => text !== '')
    .join('\n');
}
