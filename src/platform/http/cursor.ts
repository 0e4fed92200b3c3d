import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { Vault } from '../secrets/vault.js';

/** Opaque page cursors: a signed position, valid only for one list and one org. */
@Injectable()
export class Cursors {
  /** The first key signs; all keys verify. */
  private readonly keys: readonly [KeyObject, ...KeyObject[]];

  constructor(vault: Vault) {
    this.keys = vault.deriveAll('cursor');
  }

  encode(scope: string, position: readonly string[]): string {
    const text = Buffer.from(JSON.stringify(position)).toString('base64url');
    return `${text}.${this.mac(scope, text)}`;
  }

  /**
   * Throws `invalid_params` for a cursor of another list or another org, and for one that the gateway did not sign.
   */
  decode(scope: string, cursor: string, length: number): string[] {
    const [text = '', mac = ''] = cursor.split('.');
    const given = Buffer.from(mac);
    const isValid = this.keys.some((key) => {
      const expected = Buffer.from(this.mac(scope, text, key));
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
    if (isValid) {
      const position: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
      if (Array.isArray(position) && position.length === length) return position as string[];
    }
    throw new RialtoError('invalid_params', {
      violations: [{ field: 'cursor', description: 'is not a cursor of this list' }],
    });
  }

  private mac(scope: string, text: string, key = this.keys[0]): string {
    return createHmac('sha256', key).update(scope).update('\n').update(text).digest('base64url').slice(0, 22);
  }
}

/** The shape of every list under `/api`. */
export interface Page<Item> {
  items: Item[];
  nextCursor: string | null;
}

/** Makes a page from rows that were read with one row more than `limit`. */
export function pageOf<Row, Item>(
  rows: Row[],
  limit: number,
  toItem: (row: Row) => Item,
  cursorOf: (row: Row) => string,
): Page<Item> {
  const shown = rows.slice(0, limit);
  return { items: shown.map(toItem), nextCursor: rows.length > limit ? cursorOf(shown.at(-1)!) : null };
}
