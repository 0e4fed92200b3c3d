import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { RialtoError } from '../../../kernel/errors.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Range = readonly [base: Address, bits: number];

/** Targets that the operator trusts although they may be private: names, address ranges and whole origins. */
export interface AllowList {
  readonly hosts: ReadonlySet<string>;
  /** `.svc.cluster.local` for the entry `*.svc.cluster.local`. */
  readonly suffixes: readonly string[];
  readonly origins: ReadonlySet<string>;
  readonly ranges: readonly Range[];
}

/** Rules that a URL must satisfy before its name is resolved. */
export interface UrlRules {
  readonly allow: AllowList;
  readonly httpsOnly: boolean;
  /** Ports that may be used; absent: any. Allow-listed targets may use every port. */
  readonly ports?: readonly number[];
}

/**
 * The remote end of a connection as a URL names it: `host` has no brackets and no trailing dot, and is in lower case.
 */
export interface Target {
  readonly scheme: string;
  readonly host: string;
  readonly port: number;
}

/** Why a URL may not be called. It is for logs and tests: callers only get `url_not_allowed`. */
export type UrlRefusal =
  'malformed' | 'scheme' | 'userinfo' | 'https_required' | 'port' | 'local_name' | 'private_address';

/**
 * Addresses that are formally unicast, but belong to cloud infrastructure (Azure's wire server; RFC 9780 dummy
 * prefix).
 */
const reservedRanges: readonly Range[] = [ipaddr.parseCIDR('168.63.129.16/32'), ipaddr.parseCIDR('100:0:0:1::/64')];
/** The only IPv6 space that is assigned for global unicast (RFC 4291 section 2.4, IANA registry). */
const globalUnicast: Range = ipaddr.parseCIDR('2000::/3');

const localNames = new Set(['localhost', 'localhost.localdomain', 'localhost6', 'ip6-localhost', 'ip6-loopback']);
const hostShape = /^(?:\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/;

function isInRange(address: Address, [base, bits]: Range): boolean {
  return address.kind() === base.kind() && address.match(base, bits);
}

/** Parses an address to a single form (an IPv4-mapped one becomes IPv4); undefined for other text. */
function addressOf(text: string): Address | undefined {
  return isIP(text) === 0 ? undefined : ipaddr.process(text);
}

/**
 * True for an address of the public internet: unicast and, for IPv6, inside 2000::/3. Prefixes that embed an IPv4
 * address (NAT64, 6to4, Teredo, translated) are never public, because they reach the embedded address (RE-28, abuse
 * 20).
 */
export function isPublicAddress(text: string): boolean {
  const address = addressOf(text);
  if (address === undefined || address.range() !== 'unicast') return false;
  if (address.kind() === 'ipv6' && !isInRange(address, globalUnicast)) return false;
  return !reservedRanges.some((range) => isInRange(address, range));
}

/** Parses a URL; undefined for invalid text. */
export function parseUrl(text: string, base?: URL): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}

/** The target of a parsed URL, or of any object with these three fields. */
export function targetOf(url: { protocol: string; hostname: string; port: string }): Target {
  const scheme = url.protocol.slice(0, -1);
  const host = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
  const port = url.port === '' ? (scheme === 'https' ? 443 : 80) : Number(url.port);
  return { scheme, host: host.toLowerCase().replace(/\.$/, ''), port };
}

function originKey({ scheme, host, port }: Target): string {
  return `${scheme}://${host}|${port}`;
}

function badEntry(entry: string): RialtoError {
  return new RialtoError('invalid_params', {
    message: `Outbound allow list: "${entry}" is not a host, a CIDR or an origin`,
    hint: 'Write agent.internal, *.svc.cluster.local, 10.0.0.0/8 or http://127.0.0.1:8080, separated by commas.',
  });
}

function parseRange(entry: string): Range {
  const [base = '', bits, ...rest] = entry.split('/');
  const address = base.startsWith('[') && base.endsWith(']') ? base.slice(1, -1) : base;
  const family = isIP(address);
  const width = family === 4 ? 32 : 128;
  const size = bits === undefined ? width : /^\d{1,3}$/.test(bits) ? Number(bits) : -1;
  const mapped = family === 6 && ipaddr.IPv6.parse(address).isIPv4MappedAddress();
  if (family === 0 || address.includes('%') || mapped || rest.length > 0 || size < 0 || size > width)
    throw badEntry(entry);
  return [ipaddr.parse(address), size];
}

function parseOrigin(entry: string): string {
  const url = /^https?:\/\/[^/?#@\\]+\/?$/i.test(entry) ? parseUrl(entry) : undefined;
  if (url === undefined) throw badEntry(entry);
  return originKey(targetOf(url));
}

/**
 * Reads RIALTO_OUTBOUND_ALLOW: a comma-separated list of hosts (`agent.internal`, `*.svc.cluster.local`), addresses
 * or CIDRs, and origins (`http://127.0.0.1:8080`). Throws `invalid_params` with the invalid entry.
 */
export function parseAllowList(text: string): AllowList {
  const list = {
    hosts: new Set<string>(),
    suffixes: [] as string[],
    origins: new Set<string>(),
    ranges: [] as Range[],
  };
  for (const entry of text.split(',').map((part) => part.trim())) {
    if (entry === '') continue;
    const name = entry.toLowerCase().replace(/\.$/, '');
    if (entry.includes('://')) list.origins.add(parseOrigin(entry));
    else if (entry.includes('/') || entry.includes(':') || isIP(entry) !== 0) list.ranges.push(parseRange(entry));
    else if (!hostShape.test(name) || /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/.test(name) || name.includes('..'))
      throw badEntry(entry);
    else if (name.startsWith('*.')) list.suffixes.push(name.slice(1));
    else list.hosts.add(name);
  }
  return list;
}

function isListedByName(target: Target, allow: AllowList): boolean {
  return (
    allow.hosts.has(target.host) ||
    allow.origins.has(originKey(target)) ||
    allow.suffixes.some((suffix) => target.host.endsWith(suffix))
  );
}

function isListedAddress(text: string, allow: AllowList): boolean {
  const address = addressOf(text);
  return address !== undefined && allow.ranges.some((range) => isInRange(address, range));
}

/**
 * True when a connection to this target may use this address: the target or the address is allow-listed, or the
 * address is public.
 */
export function mayConnect(target: Target, address: string, allow: AllowList): boolean {
  return isListedByName(target, allow) || isListedAddress(address, allow) || isPublicAddress(address);
}

function isLocalName(host: string): boolean {
  return localNames.has(host) || host.endsWith('.localhost');
}

function ruleRefusal(target: Target, rules: UrlRules): UrlRefusal | undefined {
  if (rules.httpsOnly && target.scheme !== 'https') return 'https_required';
  return rules.ports !== undefined && !rules.ports.includes(target.port) ? 'port' : undefined;
}

/**
 * Returns why a URL may not be called; undefined when it may. It only looks at the text: a name that resolves to a
 * private address is refused when the connection is made (AN-39, abuse 20). The WHATWG parser has already normalized
 * 0x7f.1, 127.1 and １.
 */
export function checkUrl(input: string | URL, rules: UrlRules): UrlRefusal | undefined {
  const url = typeof input === 'string' ? parseUrl(input) : input;
  if (url === undefined) return 'malformed';
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'scheme';
  if (url.username !== '' || url.password !== '') return 'userinfo';
  const target = targetOf(url);
  if (target.host === '') return 'malformed';
  const local = isLocalName(target.host);
  const literal = local ? '127.0.0.1' : target.host;
  if (isListedByName(target, rules.allow) || isListedAddress(literal, rules.allow)) return undefined;
  if (local) return 'local_name';
  return (
    ruleRefusal(target, rules) ?? (isIP(literal) !== 0 && !isPublicAddress(literal) ? 'private_address' : undefined)
  );
}
