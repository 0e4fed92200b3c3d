/** True when a name equals a pattern, or matches one with `*`. */
export function matches(name: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => {
    const [first = '', ...rest] = pattern.split('*');
    const last = rest.pop();
    if (last === undefined) return name === pattern;
    if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last)) return false;
    let from = first.length;
    const until = name.length - last.length;
    return rest.every((piece) => {
      const at = name.indexOf(piece, from);
      from = at + piece.length;
      return at >= 0 && from <= until;
    });
  });
}
