import type { IncomingHttpHeaders } from 'node:http';
import type { Settings } from '../../config/settings.js';

const loopbackNames = new Set(['localhost', '127.0.0.1', '[::1]']);

/** The addresses under which this process is reached. They decide which pages may call it. */
export interface Reachable {
  /** True when it listens only on loopback. */
  readonly loopback: boolean;
  /** Host name of the public URL, when one is set. */
  readonly publicHost?: string;
}

/**
 * Guards against DNS rebinding (MCP transports, security): the Origin of a page must be the gateway's own and never
 * `null`, and on loopback the Host must be a loopback name. Clients other than browsers send no Origin and pass.
 */
export function isAllowedOrigin(headers: IncomingHttpHeaders, { loopback, publicHost }: Reachable): boolean {
  const known = (name: string): boolean => (loopback && loopbackNames.has(name)) || name === publicHost;
  const host = hostNameOf(`http://${headers.host ?? ''}`);
  if (loopback && (host === undefined || !known(host))) return false;
  if (headers.origin === undefined) return true;
  const origin = hostNameOf(headers.origin);
  if (origin === undefined) return false;
  return loopback || publicHost !== undefined ? known(origin) : origin === host;
}

const plainName = /^https?:\/\/([a-z][a-z0-9.-]*|(?:(?:0|[1-9]\d{0,2})\.){3}(?:0|[1-9]\d{0,2}))(?::\d{1,5})?$/;

/** Reads common names without parsing a URL, because this runs for every request. */
function hostNameOf(url: string): string | undefined {
  const plain = plainName.exec(url)?.[1];
  if (plain !== undefined) return plain;
  if (!URL.canParse(url)) return undefined;
  const { hostname } = new URL(url);
  return hostname === '' ? undefined : hostname;
}

/** Derives the reachable addresses from the settings. */
export function reachableAt({ HOST, RIALTO_PUBLIC_URL }: Pick<Settings, 'HOST' | 'RIALTO_PUBLIC_URL'>): Reachable {
  const publicHost = RIALTO_PUBLIC_URL ? new URL(RIALTO_PUBLIC_URL).hostname : undefined;
  return { loopback: isLoopback(HOST) || HOST === 'localhost', publicHost };
}

/** True for an address of this machine. */
export function isLoopback(address: string | undefined): boolean {
  return (
    address !== undefined && (address === '::1' || address.startsWith('127.') || address.startsWith('::ffff:127.'))
  );
}

/**
 * Returns whether a request comes from our own page or from a program. Browsers send fetch metadata (W3C) or
 * `Origin`; programs send neither.
 */
export function isOfOwnPage({ host, origin, 'sec-fetch-site': site }: IncomingHttpHeaders): boolean {
  if (site !== undefined) return site === 'same-origin' || site === 'none';
  return origin === undefined || (URL.canParse(origin) && new URL(origin).host === host);
}
