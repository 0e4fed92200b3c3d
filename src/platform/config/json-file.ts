import { existsSync, readFileSync } from 'node:fs';
import { plainJson } from './plain-json.js';

/** Where the operator may write something down: under a usual name, or one that a variable names. */
export interface DeclaredFile {
  readonly usual: string;
  readonly variable: string;
}

/** The file that is read: the named one, else the one of the usual name when it exists. */
export function declaredFileInUse(named: string | undefined, usual: string): string | undefined {
  return named ?? (existsSync(usual) ? usual : undefined);
}

/** What is in it. Undefined without one of the usual name; and, with a problem more, where it is named and missing, or no JSON. */
export function readDeclaredFile(
  named: string | undefined,
  { usual, variable }: DeclaredFile,
  problems: string[],
): { readonly file: string; readonly content: unknown } | undefined {
  const file = declaredFileInUse(named, usual);
  if (file === undefined) return undefined;
  if (!existsSync(file)) {
    problems.push(`${variable} names ${file}, which does not exist`);
    return undefined;
  }
  try {
    return { file, content: JSON.parse(plainJson(readFileSync(file, 'utf8'))) };
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
