import { parseExact } from '../../protocol/exact-integers.js';
import { longText, parseLongExact } from '../turns.js';

/** JSON of a column that is too long to be parsed at once, until `parseLongColumns` has parsed it. */
export class LongJson {
  /** Number of such columns that this process has read. */
  static count = 0;

  constructor(readonly text: string) {
    LongJson.count++;
  }
}

/** Reads a JSON column. Integers that a double would change become bigints. */
export function readJson(text: string): unknown {
  return text.length < longText ? parseExact(text) : new LongJson(text);
}

/** Parses the long JSON in the rows of a result, in place; other requests run meanwhile. */
export async function parseLongColumns(rows: readonly Record<string, unknown>[]): Promise<void> {
  for (const row of rows)
    for (const [name, value] of Object.entries(row))
      if (value instanceof LongJson) row[name] = await parseLongExact(value.text);
}
