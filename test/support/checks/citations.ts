import ts from 'typescript';

const citation = /\b(RE|AN|AE|RY|RI)-(\d{2,3})(?:\s*(?:…|\.\.\.)\s*(?:\1-)?(\d{2,3}))?/g;
const skipping = new Set(['xit', 'xtest', 'xdescribe']);

/**
 * Returns the requirement ids in the titles of a spec file, table rows included. Comments and skipped tests do not
 * count.
 */
export function citationsOf(text: string): string[] {
  const found = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && isSkipped(node.expression)) return;
    if (isText(node)) for (const id of idsIn(node.text)) found.add(id);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile('a.spec.ts', text, ts.ScriptTarget.Latest));
  return [...found];
}

/** Returns the ids in a text. A range counts all its ids: `RE-15…RE-20` and `RE-15…20` are six ids. */
export function idsIn(text: string): string[] {
  return [...text.matchAll(citation)].flatMap(([, system, first = '', last = first]) =>
    Array.from({ length: Math.max(1, Number(last) - Number(first) + 1) }, (_, index) => {
      return `${system}-${String(Number(first) + index).padStart(2, '0')}`;
    }),
  );
}

type Text = ts.StringLiteralLike | ts.TemplateHead | ts.TemplateMiddle | ts.TemplateTail;

function isText(node: ts.Node): node is Text {
  return (
    ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddle(node) || ts.isTemplateTail(node)
  );
}

/** Recognizes `it.skip(…)` and `it.skip.each(…)(…)`. */
function isSkipped(callee: ts.Node): boolean {
  if (ts.isCallExpression(callee)) return isSkipped(callee.expression);
  if (ts.isPropertyAccessExpression(callee) && callee.name.text === 'each') return isSkipped(callee.expression);
  if (ts.isPropertyAccessExpression(callee)) return ['skip', 'todo'].includes(callee.name.text);
  return ts.isIdentifier(callee) && skipping.has(callee.text);
}
