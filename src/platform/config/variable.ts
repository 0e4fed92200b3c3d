import { readFileSync } from 'node:fs';

export type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Reads a variable that holds a secret: its own value, or the content of the file that `<name>_FILE` names, without
 * the final line end. A file that cannot be read, and a variable given in both ways, are problems; they never show
 * the value.
 */
export function secretVariable(env: Variables, name: string, problems: string[]): string | undefined {
  const file = env[`${name}_FILE`];
  if (!file) return env[name];
  if (env[name]) problems.push(`${name} and ${name}_FILE are both set; unset one of them`);
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    problems.push(`${name}_FILE names a file that cannot be read (${(error as NodeJS.ErrnoException).code})`);
    return undefined;
  }
}
