/**
 * Limits of one policy text. Beyond them Cedar's WebAssembly exhausts its stack and is lost for the whole process, or
 * a check blocks the event loop. They are a quarter of the smallest values that caused a trap: 290 calls in a chain
 * and 360 of any other operator (evaluation), 130 brackets (parsing).
 */
const textLimits = { bytes: 16_384, policies: 20, nesting: 32, operators: 70 } as const;

/** Maximum words of one new text. Strict validation takes up to 10 µs for each word and cannot be split. */
export const maxWords = 4_100;

/**
 * Limits of `like`. For each policy, matching takes time in proportion to pattern length times text length (8 KiB at
 * most).
 */
const likeLimits = { perPolicy: 10, length: 96, wildcards: 4 } as const;

/** Cost of compiling a text and deciding by it. */
export interface Weight {
  readonly bytes: number;
  /** Number of words, numbers, strings and signs. They determine the time of compiling. */
  readonly words: number;
  /**
   * Characters of patterns that are tried at each position of an argument, not only at its start. They determine the
   * time of a decision.
   */
  readonly patterns: number;
}

/** One policy of a text: its source and its start, in UTF-16 units. */
export interface Statement {
  readonly text: string;
  readonly start: number;
}

/** A problem of a text, found before Cedar reads it, and its position (UTF-16 offset). */
export interface SourceProblem {
  readonly message: string;
  readonly at: number;
  readonly hint?: string;
}

export type SourceScan =
  { readonly statements: readonly Statement[]; readonly weight: Weight } | { readonly problem: SourceProblem };

// As in Cedar's lexer, a comment ends at CR or LF and a string cannot contain an escaped line end. Text and comments
// must be the same for this pattern and for Cedar, or a policy could hide brackets from the count.
const token = /\/\/[^\r\n]*|"[^"\\]*(?:\\[^\r\n][^"\\]*)*"|[A-Za-z_]\w*|\d+|&&|\|\||\s+|./gsu;
const openers = new Set(['(', '[', '{']);
const closers = new Set([')', ']', '}']);
// Operators that nest when they repeat. The grammar allows one relation (`==`, `in`, `has` …) between brackets, and
// lists are flat. Records are counted too: like nested lists, a long list of them makes strict validation take half a
// second.
const operators = new Set(['&&', '||', '+', '-', '*', '!', 'if']);
const separators = new Set(['=', '<', '>', 'has', 'in', 'like', 'is', 'then', 'else', ',']);
/** Dots of one operand that do not count, as in `context.input.getTag("x")`. */
const freeDots = 2;

/**
 * Splits a text into its policies and refuses a text that could exhaust Cedar's stack: a trap makes the WebAssembly
 * instance unusable, so that every call of every org would be denied (abuse 14).
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
          hint: 'split it into several texts',
        },
      }
    : { statements, weight: { bytes: Buffer.byteLength(text), words, patterns } };
}

interface Shape {
  start: number;
  /** Dots of the current operand, for the policy itself and each open bracket. */
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

/**
 * Returns whether a token counts as an operator. The sign of a number and a list that is not in another list do not
 * count.
 */
function nests(shape: Shape, part: string, last: string): boolean {
  const level = shape.dots.length - 1;
  if (part === '.') return ++shape.dots[level]! > freeDots;
  if (operators.has(part) || separators.has(part)) shape.dots[level] = 0;
  if (part === '{') return last !== 'when' && last !== 'unless';
  if (part === '[') return last === '[' || last === ',';
  return operators.has(part) && (part !== '-' || /[\w"\])}]$/.test(last));
}

/**
 * Returns the length of a pattern with characters after a wildcard; else 0, because such a pattern needs only one
 * comparison at the start of a text.
 */
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

/** Returns line and column of an offset (both from 1, the column in UTF-16 units). */
export function positionAt(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset);
  const lastBreak = before.lastIndexOf('\n');
  return { line: before.split('\n').length, column: offset - lastBreak };
}
