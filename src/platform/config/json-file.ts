import { existsSync, readFileSync } from 'node:fs';
import { plainJson } from './plain-json.js';

/** A file that the operator may write: under a default name, or one that a variable names. */
export interface DeclaredFile {
  readonly defaultName: string;
  readonly variable: string;
}

/** Returns the file to read: the named one, else the default one when it exists. */
export function declaredFileInUse(named: string | undefined, defaultName: string): string | undefined {
  return named ?? (existsSync(defaultName) ? defaultName : undefined);
}

/**
 * Reads the file. Undefined when the default file is absent; also, with a problem added, when a named file is missing
 * or the file is not JSON.
 */
export function readDeclaredFile(
  named: string | undefined,
  { defaultName, variable }: DeclaredFile,
  problems: string[],
): { readonly file: string; readonly content: unknown } | undefined {
  const file = declaredFileInUse(named, defaultName);
  if (file === undefined) return undefined;
  if (!existsSync(file)) {
    problems.push(`${variable} names ${file}, which does not exist`);
    return undefined;
  }
  try {
    return { file, content: JSON.parse(plainJson(readFileSync(file, 'utf8'))) };
  } catch (error) {
    problems.push(`${file} cannot be read as JSON: ${jsonReason(error as Error)}`);
    return undefined;
  }
}

/** Returns only the place of a JSON error: a parser quotes the text around it, which may be a secret. */
function jsonReason({ name, message }: Error): string {
  if (name !== 'SyntaxError') return message;
  return /at position \d+(?: \(line \d+ column \d+\))?/.exec(message)?.[0] ?? 'it is not JSON';
}
