/**
 * Bounds of one policy text; beyond them Cedar's WebAssembly runs out of stack and is lost for the whole process, or a
 * check blocks the event loop. A quarter of what was seen to trap: 290 calls in a chain and 360 of any other operator
 * (deciding), 130 brackets (parsing).
 */
const textLimits = { bytes: 16_384, policies: 20, nesting: 32, operators: 70 } as const;

/** Words of one new text: strict validation takes up to 10 µs for each, in one piece. */
export const maxWords = 4_100;

/** A pattern takes time by its length times the length of the text (8 KiB at most), for each policy. */
const likeLimits = { perPolicy: 10, length: 96, wildcards: 4 } as const;

/** What a text costs those who judge and decide by it. */
export interface Weight {
  readonly bytes: number;
  /** Words, numbers, strings and signs: compiling takes time by these. */
  readonly words: number;
  /** Characters of patterns that are tried at each place of an argument, not only at its beginning: each decision takes time by these. */
  readonly patterns: number;
}

/** One policy of a text: its source and where it starts, in UTF-16 units. */
export interface Statement {
  readonly text: string;
  readonly start: number;
}

/** What is wrong with a text before Cedar may see it, and where (UTF-16 offset). */
export interface SourceProblem {
  readonly message: string;
  readonly at: number;
  readonly hint?: string;
}

export type SourceScan =
  { readonly statements: readonly Statement[]; readonly weight: Weight } | { readonly problem: SourceProblem };

// A comment ends at CR or LF and a string cannot hold an escaped line end, as in Cedar's own lexer: what this pattern
// takes for text, Cedar must take for text too, or brackets could hide from the count.
const token = /\/\/[^\r\n]*|"[^"\\]*(?:\\[^\r\n][^"\\]*)*"|[A-Za-z_]\w*|\d+|&&|\|\||\s+|./gsu;
const openers = new Set(['(', '[', '{']);
const closers = new Set([')', ']', '}']);
// What nests by repetition (the grammar takes one relation, `==`, `in`, `has` …, between brackets, and lists are flat), and
// records, of which, as of lists, a long list takes strict validation half a second.
const operators = new Set(['&&', '||', '+', '-', '*', '!', 'if']);
const separators = new Set(['=', '<', '>', 'has', 'in', 'like', 'is', 'then', 'else', ',']);
/** As in `context.input.getTag("x")`: dots of one operand that do not count. */
const freeDots = 2;

/**
 * Splits a text into its policies and refuses what could exhaust Cedar's stack: a trap there leaves the WebAssembly
 * instance unusable, which would deny every call of every org (abuse 14).
 */
export function scanPolicies(text: string): SourceScan {
  const refusal = refuseWhole(text);
  if (refusal) return { problem: { message: refusal, at: 0 } };
  const statements: Statement[] = [];
  let open: Shape | undefined;
  let words = 0;
  let patterns = 0;
  for (const match of text.matchAll(token)) {
    const [part] = match;
    if (part.startsWith('//') || part.trim() === '') continue;
    words++;
    if (open?.last === 'like') patterns += searchLength(part);
    open ??= { start: match.index, dots: [0], operators: 0, likes: 0, last: '' };
    const problem = part === '"' ? 'a string is not closed' : grow(open, part);
    if (problem) return { problem: { message: problem, at: match.index } };
    if (part !== ';' || open.dots.length > 1) continue;
    statements.push({ text: text.slice(open.start, match.index + 1), start: open.start });
    open = undefined;
  }
  if (open) statements.push({ text: text.slice(open.start), start: open.start });
  return statements.length > textLimits.policies
    ? {
        problem: {
          message: `more than ${textLimits.policies} policies in one text`,
          at: 0,
          hint: 'split it in several',
        },
      }
    : { statements, weight: { bytes: Buffer.byteLength(text), words, patterns } };
}

interface Shape {
  start: number;
  /** For each open bracket, and the policy itself, the dots of its present operand. */
  dots: number[];
  operators: number;
  likes: number;
  last: string;
}

function refuseWhole(text: string): string | undefined {
  if (Buffer.byteLength(text) > textLimits.bytes) return `the text is larger than ${textLimits.bytes / 1_024} KiB`;
  return text.isWellFormed() ? undefined : 'the text is not well-formed Unicode';
}

function grow(shape: Shape, part: string): string | undefined {
  const { last } = shape;
  shape.last = part;
  if (openers.has(part)) shape.dots.push(0);
  if (closers.has(part) && shape.dots.length > 1) shape.dots.pop();
  if (nests(shape, part, last)) shape.operators++;
  if (part === 'like') shape.likes++;
  if (shape.dots.length - 1 > textLimits.nesting) return `nested more than ${textLimits.nesting} deep`;
  if (shape.operators > textLimits.operators) return `more than ${textLimits.operators} operators in one policy`;
  if (shape.likes > likeLimits.perPolicy) return `more than ${likeLimits.perPolicy} \`like\` in one policy`;
  return last === 'like' ? patternProblem(part) : undefined;
}

/** Whether the part counts; the sign of a number and a list of its own do not. */
function nests(shape: Shape, part: string, last: string): boolean {
  const level = shape.dots.length - 1;
  if (part === '.') return ++shape.dots[level]! > freeDots;
  if (operators.has(part) || separators.has(part)) shape.dots[level] = 0;
  if (part === '{') return last !== 'when' && last !== 'unless';
  if (part === '[') return last === '[' || last === ',';
  return operators.has(part) && (part !== '-' || /[\w"\])}]$/.test(last));
}

/** Length of a pattern that has anything behind a wildcard: without it, one look at the beginning of a text is enough. */
function searchLength(pattern: string): number {
  const plain = pattern.slice(1, -1).replaceAll(/\\./gs, '_');
  const wildcard = plain.indexOf('*');
  return wildcard === -1 || wildcard === plain.length - 1 ? 0 : plain.length;
}

function patternProblem(pattern: string): string | undefined {
  if (pattern.length - 2 > likeLimits.length) return `a pattern of more than ${likeLimits.length} characters`;
  const wildcards = pattern.replaceAll(/\\./gs, '').split('*').length - 1;
  return wildcards > likeLimits.wildcards ? `more than ${likeLimits.wildcards} wildcards in one pattern` : undefined;
}

/** Line and column (both from 1, the column in UTF-16 units) of an offset into a text. */
export function positionAt(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset);
  const lastBreak = before.lastIndexOf('\n');
  return { line: before.split('\n').length, column: offset - lastBreak };
}
