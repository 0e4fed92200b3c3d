import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';

/**
 * Which peers are trusted proxies, from RIALTO_TRUST_PROXY. `hops` is the number of proxies in front of the gateway.
 */
export type TrustProxy =
  { readonly hops: number } | { readonly ranges: readonly [ipaddr.IPv4 | ipaddr.IPv6, number][] };

/**
 * Parses the setting: `true` trusts every hop, a number that many hops, else a list of CIDRs. Throws for other text
 * and names the entry.
 */
export function parseTrustProxy(text: string | undefined): TrustProxy {
  if (text === undefined || text === 'false' || text === '0') return { hops: 0 };
  if (text === 'true') return { hops: Infinity };
  if (/^\d+$/.test(text)) return { hops: Number(text) };
  const ranges = text.split(',').map((entry) => {
    const range = entry.trim();
    if (ipaddr.isValid(range)) return [ipaddr.parse(range), range.includes(':') ? 128 : 32] as [ipaddr.IPv4, number];
    if (!ipaddr.isValidCIDR(range)) throw new Error(`${range} is neither an address nor a CIDR`);
    return ipaddr.parseCIDR(range);
  });
  return { ranges };
}

/**
 * Returns the sender of a request: the peer of the socket, or behind trusted proxies the nearest address that is not
 * such a proxy. It is used for the log and to count failed logins.
 */
export function clientAddress(request: Pick<IncomingMessage, 'headers' | 'socket'>, trust: TrustProxy): string {
  const forwarded = request.headers['x-forwarded-for'];
  const hops = typeof forwarded === 'string' ? forwarded.split(',').map((hop) => hop.trim()) : [];
  const path = [...hops, request.socket.remoteAddress ?? ''].reverse();
  const trusted =
    'hops' in trust
      ? (_hop: string, index: number) => index < trust.hops
      : (hop: string) => isWithin(hop, trust.ranges);
  const found = path.findIndex((hop, index) => !trusted(hop, index));
  const address = path[found < 0 ? path.length - 1 : found]!;
  return ipaddr.isValid(address) ? address : 'unknown';
}

function isWithin(address: string, ranges: readonly [ipaddr.IPv4 | ipaddr.IPv6, number][]): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return ranges.some(([range, bits]) => range.kind() === parsed.kind() && parsed.match(range, bits));
}
