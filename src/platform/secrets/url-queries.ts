import { createHmac } from 'node:crypto';
import type { Vault } from './vault.js';

/** What takes the place of a query in a row: the same for the same query, so that addresses can be compared. */
const placeholder = '?#query-';

/** A URL as its row shows it, and what a sealed column has to hold of it. */
export interface HiddenUrl {
  readonly url: string;
  readonly query?: string;
}

/** An address as it is shown: many have their credential in the query. */
export function withoutQuery(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

/** Keeps the queries of URLs, which many have their credential in, out of plain columns. */
export class UrlQueries {
  private readonly key: Buffer;

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

  /** Whether a row shows a URL without its query. */
  static isHidden(url: string): boolean {
    return url.includes(placeholder);
  }

  /** The whole URL again; one that nothing was hidden of is what it is. */
  static whole({ url, query }: HiddenUrl): string {
    return query === undefined ? url : `${url.slice(0, url.indexOf(placeholder))}?${query}`;
  }
}
