/** A marked block of a documentation page: the text to run or to save, and the output that the page shows for it. */
export interface DocBlock {
  /**
   * `run`: a shell runs the block and waits; `background`: a shell runs it and does not wait; `file`: the block is
   * saved; `printed`: the block shows the output of a background program.
   */
  readonly kind: 'run' | 'background' | 'file' | 'printed';
  /** The file or program name of `file` and `printed` blocks. */
  readonly file: string;
  readonly text: string;
  readonly output?: { readonly language: string; readonly text: string };
}

const marked =
  /<!-- (run|background|file: (\S+)|printed by (\S+)) -->\n```(\w+)\n(.*?)```(?:\n```(json|text)\n(.*?)```)?/gs;

export function blocksOf(page: string): DocBlock[] {
  return [...page.matchAll(marked)].map(([, word, saved, program, , text, language, output]) => {
    const kind = word!.split(/[: ]/)[0] as DocBlock['kind'];
    const file = saved ?? program ?? '';
    if (kind === 'printed')
      return { kind, file, text: `printed by ${file}`, output: { language: 'text', text: text! } };
    return { kind, file, text: text!, ...(output !== undefined && { output: { language: language!, text: output } }) };
  });
}

/**
 * Compares the shown output with the printed one and returns the differences. JSON may omit members; `…` matches any
 * text.
 */
export function shows(shown: string, language: string, printed: string): { wrong: string[] } {
  if (language === 'json') return { wrong: differences(JSON.parse(shown), JSON.parse(printed) as unknown, '') };
  const isSame = wildcard(shown.trim()).test(printed.trim());
  return { wrong: isSame ? [] : [`shown: ${shown.trim()}`, `printed: ${printed.trim()}`] };
}

function wildcard(text: string): RegExp {
  const literal = text.split('…').map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${literal.join('[^\\n]*')}$`);
}

function differences(shown: unknown, printed: unknown, path: string): string[] {
  if (typeof shown === 'string' && typeof printed === 'string' && wildcard(shown).test(printed)) return [];
  if (Array.isArray(shown) && Array.isArray(printed) && shown.length === printed.length)
    return shown.flatMap((one, index) => differences(one, printed[index], `${path}/${index}`));
  if (isObject(shown) && isObject(printed))
    return Object.keys(shown).flatMap((name) => differences(shown[name], printed[name], `${path}/${name}`));
  return shown === printed ? [] : [`${path}: shown ${JSON.stringify(shown)}, printed ${JSON.stringify(printed)}`];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
