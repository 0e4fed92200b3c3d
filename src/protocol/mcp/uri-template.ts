/**
 * True when a URI can be made from a template (RFC 6570). `{name}` stands for any text without `/`, `?` and `#`; an
 * expression with an operator (`{+path}`, `{/a,b}`, `{?q}`) for any text, also an empty one. The time is linear in the
 * length of both, because both come from outside.
 */
export function matchesTemplate(template: string, uri: string): boolean {
  const [first = '', ...rest] = template.split(/\{([^{}]*)\}/);
  if (!uri.startsWith(first)) return false;
  let at = first.length;
  for (let index = 0; index < rest.length; index += 2) {
    const [expression, literal] = [rest[index]!, rest[index + 1]!];
    const isLast = index + 2 === rest.length;
    const end = isLast ? uri.length - literal.length : literal === '' ? at : uri.indexOf(literal, at);
    if (end < at || (isLast && !uri.endsWith(literal))) return false;
    if (!canBe(expression, uri.slice(at, end))) return false;
    at = end + literal.length;
  }
  return at === uri.length;
}

/** Returns the text before the first expression of a template. */
export function templateStart(template: string): string {
  return template.split('{', 1)[0]!;
}

function canBe(expression: string, text: string): boolean {
  return /^[+#./;?&]/.test(expression) || !/[/?#]/.test(text);
}
