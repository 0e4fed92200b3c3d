import { RialtoError } from '../kernel/errors.js';
import { SettingsError } from '../platform/config/settings.js';

export type Env = Record<string, string | undefined>;

/** Error for wrong use of a command, or for a problem that it found: only its message is shown. */
export class CommandError extends Error {
  constructor(
    message: string,
    readonly exitCode = 1,
  ) {
    super(message);
  }
}

/** Error for a check that had nothing to check; its message gives the reason. */
export class Skipped extends Error {}

/** Prints the result of a command, for programs, on standard output. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Prints information for a person on standard error. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Returns the lines that describe a failure: one for each problem, never a stack. */
export function explain(error: unknown): string[] {
  if (error instanceof SettingsError) return error.problems;
  if (error instanceof RialtoError) return [error.hint ? `${error.message}; ${error.hint}` : error.message];
  return [(error instanceof Error ? error.message : String(error)).split('\n')[0] || 'failed'];
}

/** Formats rows as columns padded to their widest cell, two spaces apart; the same on a terminal and in a file. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
