import { createHmac, type KeyObject } from 'node:crypto';
import type { Vault } from './vault.js';

/** Replaces a query in a row. Equal queries get equal marks, so that URLs can be compared. */
const placeholder = '?#query-';

/** A URL as stored in its row, and the query that belongs in a sealed column. */
export interface HiddenUrl {
  readonly url: string;
  readonly query?: string;
}

/** Removes the query from a URL for display, because many URLs have a credential in it. */
export function withoutQuery(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

/** Keeps the queries of URLs out of plain columns, because they may contain credentials. */
export class UrlQueries {
  private readonly key: KeyObject;

  constructor(vault: Vault) {
    this.key = vault.derive('url-query');
  }

  hide(url: string): HiddenUrl {
    const at = url.indexOf('?');
    if (at === -1) return { url };
    const query = url.slice(at + 1);
    const mark = createHmac('sha256', this.key).update(query).digest('base64url').slice(0, 22);
    return { url: `${url.slice(0, at)}${placeholder}${mark}`, query };
  }

  /** True when a row contains a URL with a hidden query. */
  static isHidden(url: string): boolean {
    return url.includes(placeholder);
  }

  /** Restores the whole URL. A URL without a hidden query is returned unchanged. */
  static whole({ url, query }: HiddenUrl): string {
    return query === undefined ? url : `${url.slice(0, url.indexOf(placeholder))}?${query}`;
  }
}
