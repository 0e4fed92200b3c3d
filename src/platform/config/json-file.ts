import { existsSync, readFileSync } from 'node:fs';

/** Where the operator may write something down: under a usual name, or one that a variable names. */
export interface DeclaredFile {
  readonly usual: string;
  readonly variable: string;
}

/** What is in it. Undefined without one of the usual name; and, with a problem more, where it is named and missing, or no JSON. */
export function readDeclaredFile(
  named: string | undefined,
  { usual, variable }: DeclaredFile,
  problems: string[],
): { readonly file: string; readonly content: unknown } | undefined {
  const file = named ?? usual;
  if (!existsSync(file)) {
    if (named) problems.push(`${variable} names ${file}, which does not exist`);
    return undefined;
  }
  try {
    return { file, content: JSON.parse(readFileSync(file, 'utf8')) };
  } catch (error) {
    problems.push(`${file} cannot be read as JSON: ${reasonOf(error as Error)}`);
    return undefined;
  }
}

/** A parser quotes the text around an error, and that may be a secret: only the place is told. */
function reasonOf({ name, message }: Error): string {
  if (name !== 'SyntaxError') return message;
  return /at position \d+(?: \(line \d+ column \d+\))?/.exec(message)?.[0] ?? 'it is not JSON';
}
