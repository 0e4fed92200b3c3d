import { createHmac, timingSafeEqual } from 'node:crypto';
import { RialtoError } from '../../kernel/errors.js';
import type { Vault } from '../secrets/vault.js';

/** Opaque page cursors: a position, signed, bound to the list and the org it was made for. */
export class Cursors {
  private readonly key: Buffer;

  constructor(vault: Vault) {
    this.key = vault.derive('cursor');
  }

  encode(scope: string, position: readonly string[]): string {
    const text = Buffer.from(JSON.stringify(position)).toString('base64url');
    return `${text}.${this.mac(scope, text)}`;
  }

  /** Throws `invalid_params` for a cursor of another list, another org, or nobody's. */
  decode(scope: string, cursor: string, length: number): string[] {
    const [text = '', mac = ''] = cursor.split('.');
    const expected = Buffer.from(this.mac(scope, text));
    const given = Buffer.from(mac);
    if (given.length === expected.length && timingSafeEqual(given, expected)) {
      const position: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
      if (Array.isArray(position) && position.length === length) return position as string[];
    }
    throw new RialtoError('invalid_params', {
      violations: [{ field: 'cursor', description: 'is not a cursor of this list' }],
    });
  }

  private mac(scope: string, text: string): string {
    return createHmac('sha256', this.key).update(scope).update('\n').update(text).digest('base64url').slice(0, 22);
  }
}

/** The shape of every list under `/api`. */
export interface Page<Item> {
  items: Item[];
  nextCursor: string | null;
}

/** Cuts one row more than was asked for into a page. */
export function pageOf<Row, Item>(
  rows: Row[],
  limit: number,
  toItem: (row: Row) => Item,
  cursorOf: (row: Row) => string,
): Page<Item> {
  const shown = rows.slice(0, limit);
  return { items: shown.map(toItem), nextCursor: rows.length > limit ? cursorOf(shown.at(-1)!) : null };
}
