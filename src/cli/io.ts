import { RialtoError } from '../kernel/errors.js';
import { SettingsError } from '../platform/config/settings.js';

export type Env = Record<string, string | undefined>;

/** A command was used wrongly or found something amiss: its message is all that is shown. */
export class CommandError extends Error {
  constructor(
    message: string,
    readonly exitCode = 1,
  ) {
    super(message);
  }
}

/** There was nothing to look at, and why. */
export class Skipped extends Error {}

/** The result of a command, for programs: standard output. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** What a person may want to know besides: standard error. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** The lines that tell a failure: one for each fault, never a stack. */
export function explain(error: unknown): string[] {
  if (error instanceof SettingsError) return error.problems;
  if (error instanceof RialtoError) return [error.hint ? `${error.message}; ${error.hint}` : error.message];
  return [(error instanceof Error ? error.message : String(error)).split('\n')[0] || 'failed'];
}

/** Columns padded to their widest cell, two spaces apart; the same on a terminal and in a file. */
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
