import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { check } from 'recheck';
import ts from 'typescript';

interface Pattern {
  readonly at: string;
  readonly source: string;
  readonly flags: string;
}

/** True for an expression that is only parsed, to check its syntax. Its object is dropped and never runs on a text. */
const isOnlyParsed = ({ parent }: ts.Node): boolean =>
  ts.isBinaryExpression(parent) && parent.operatorToken.kind === ts.SyntaxKind.InstanceOfKeyword;

/**
 * Returns every regular expression of the product. Throws for one that is built at run time, because this test cannot
 * check it.
 */
function patternsOf(folder: string): Pattern[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.spec.ts'))
    .flatMap((name) => {
      const file = join(folder, name);
      const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);
      const found: Pattern[] = [];
      const visit = (node: ts.Node): void => {
        if (ts.isNewExpression(node) && node.expression.getText() === 'RegExp' && !isOnlyParsed(node))
          throw new Error(`${file}: ${node.getText()}`);
        if (ts.isRegularExpressionLiteral(node)) {
          const end = node.text.lastIndexOf('/');
          const { line } = source.getLineAndCharacterOfPosition(node.getStart());
          found.push({ at: `${file}:${line + 1}`, source: node.text.slice(1, end), flags: node.text.slice(end + 1) });
        }
        ts.forEachChild(node, visit);
      };
      visit(source);
      return found;
    });
}

/** Only counted steps decide: a time limit would take a busy machine for a slow expression. */
const limits = { timeout: null, attackTimeout: null, incubationTimeout: null };

/** Returns the patterns with a time that grows faster than their text, each with an attack text as proof. */
async function slow(patterns: readonly Pattern[]): Promise<string[]> {
  const found: string[] = [];
  for (const { at, source, flags } of patterns) {
    // The checker does not know the flag `v`, and no pattern needs its extensions.
    const verdict = await check(source, flags.replace('v', 'u'), limits);
    if (verdict.status === 'safe') continue;
    const why = verdict.status === 'vulnerable' ? verdict.attack.pattern : verdict.error.kind;
    found.push(`${at} /${source}/${flags}: ${why}`);
  }
  return found;
}

it('X2.1 every regular expression takes at most linear time', async () => {
  const patterns = patternsOf('src');
  expect(patterns.length).toBeGreaterThan(200);
  expect(await slow(patterns)).toEqual([]);
}, 300_000);

it('X2.1 earlier slow expressions are detected', async () => {
  const before = [
    String.raw`()\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*()`,
    String.raw`^(cookie|.*(password|passwd|secret).*)$`,
    String.raw`\/+$`,
  ];
  expect(await slow(before.map((source) => ({ at: 'before', source, flags: 'i' })))).toHaveLength(before.length);
});
