import type { A2aVersion, Binding } from './model.js';

/** An address and protocol of an agent, as its card states them; the url is absolute. */
export interface CardInterface {
  readonly url: string;
  readonly binding: Binding;
  readonly version: A2aVersion;
  readonly tenant?: string;
}

/** An interface as a card states it, before the checks. */
export interface ClaimedInterface {
  readonly url?: string;
  readonly binding?: string;
  readonly version?: string;
  readonly tenant?: string;
}

const bindings = new Map<string, Binding>([
  ['JSONRPC', 'JSONRPC'],
  ['JSON-RPC', 'JSONRPC'],
  ['HTTP+JSON', 'HTTP+JSON'],
  ['REST', 'HTTP+JSON'],
  ['GRPC', 'GRPC'],
]);
const knownBindings = new Set(bindings.values());
const maxUrlLength = 2_048;

/**
 * True when the gateway supports the binding. Interfaces with a custom binding stay in the card, so that others can see
 * them.
 */
export function isUsable(cardInterface: CardInterface): boolean {
  return knownBindings.has(cardInterface.binding);
}

/**
 * Checks the stated interfaces and returns the valid ones in the same order: relative urls are resolved against the
 * agent's base url, bindings have one spelling, versions are cut to Major.Minor (v1.0 section 3.6.1), and duplicates
 * are removed. Interfaces without a valid url or with an unsupported version are dropped.
 */
export function resolveInterfaces(claims: readonly ClaimedInterface[], cardUrl: string): CardInterface[] {
  const found = new Map<string, CardInterface>();
  for (const claim of claims) {
    const binding = bindings.get((claim.binding ?? 'JSONRPC').toUpperCase()) ?? claim.binding ?? 'JSONRPC';
    const url = binding === 'GRPC' ? grpcTarget(claim.url, cardUrl) : httpUrl(claim.url, cardUrl);
    const version = versionOf(claim.version);
    if (url === undefined || version === undefined) continue;
    const cardInterface = { url, binding, version, ...(claim.tenant && { tenant: claim.tenant }) };
    const key = JSON.stringify([url, binding, version, claim.tenant ?? '']);
    found.set(key, cardInterface);
  }
  return [...found.values()];
}

/**
 * Returns `1.0` for 1.0 and 1.0.x, `0.3` for every 0.x (0.2 differs only in the card), and undefined for newer
 * versions.
 */
function versionOf(version: string | undefined): A2aVersion | undefined {
  if (version === undefined || /^v?1(\.0(\.\d+)?)?$/.test(version)) return '1.0';
  return /^v?0\.\d+(\.\d+)?$/.test(version) ? '0.3' : undefined;
}

function httpUrl(url: string | undefined, cardUrl: string): string | undefined {
  if (!url || url.length > maxUrlLength || isWithoutScheme(url) || !URL.canParse(url, baseOf(cardUrl)))
    return undefined;
  const resolved = new URL(url, baseOf(cardUrl));
  return resolved.protocol === 'http:' || resolved.protocol === 'https:' ? resolved.href : undefined;
}

/** True for `www.example.com/a2a` or `localhost:9000`: a host without its scheme, not a path relative to the agent. */
export function isWithoutScheme(url: string): boolean {
  const first = /^[^/?#]*/.exec(url)![0];
  return /^[\w-]+(?:\.[\w-]+)*(?::\d{1,5})?$/.test(first) && /[.:]/.test(first);
}

/** Accepts a gRPC address: `host:port` without a scheme (v1.0.1 section 5.8), or a full url. */
function grpcTarget(url: string | undefined, cardUrl: string): string | undefined {
  if (url && /^(\[[0-9a-f:]+\]|[\w.-]{1,253}):\d{1,5}$/i.test(url)) return url;
  return httpUrl(url, cardUrl);
}

/**
 * Returns the base url of the agent that a card belongs to: `https://h/x/` for
 * `https://h/x/.well-known/agent-card.json`.
 */
function baseOf(cardUrl: string): string {
  return cardUrl.replace(/\/(\.well-known\/)?agent(-card)?\.json([?#][^]*)?$/, '/');
}
