import type { A2aVersion, Binding } from './model.js';

/** Where and how an agent is called, as its card says; the url is absolute. */
export interface CardInterface {
  readonly url: string;
  readonly binding: Binding;
  readonly version: A2aVersion;
  readonly tenant?: string;
}

/** What a card claims, before it is checked. */
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

/** True when Rialto itself can speak the binding; a custom one is kept for others to see. */
export function isUsable(face: CardInterface): boolean {
  return knownBindings.has(face.binding);
}

/**
 * Claims to interfaces, in the same order: relative urls resolved against the agent's base url, bindings in one spelling,
 * versions cut to Major.Minor (v1.0 section 3.6.1), duplicates removed. A claim without a valid url or of a version that
 * nobody here speaks is left out.
 */
export function resolveInterfaces(claims: readonly ClaimedInterface[], cardUrl: string): CardInterface[] {
  const found = new Map<string, CardInterface>();
  for (const claim of claims) {
    const binding = bindings.get((claim.binding ?? 'JSONRPC').toUpperCase()) ?? claim.binding ?? 'JSONRPC';
    const url = binding === 'GRPC' ? grpcTarget(claim.url, cardUrl) : httpUrl(claim.url, cardUrl);
    const version = versionOf(claim.version);
    if (url === undefined || version === undefined) continue;
    const face = { url, binding, version, ...(claim.tenant && { tenant: claim.tenant }) };
    const key = JSON.stringify([url, binding, version, claim.tenant ?? '']);
    found.set(key, face);
  }
  return [...found.values()];
}

/** `1.0` for 1.0 and 1.0.x, `0.3` for every 0.x (0.2 differs in the card only), undefined for what is newer. */
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

/** True for `www.example.com/a2a` or `localhost:9000`: a host whose scheme was forgotten, and no path relative to the agent. */
export function isWithoutScheme(url: string): boolean {
  const first = /^[^/?#]*/.exec(url)![0];
  return /^[\w-]+(?:\.[\w-]+)*(?::\d{1,5})?$/.test(first) && /[.:]/.test(first);
}

/** A gRPC url is `host:port` without a scheme (v1.0.1 section 5.8); a full url is accepted too. */
function grpcTarget(url: string | undefined, cardUrl: string): string | undefined {
  if (url && /^(\[[0-9a-f:]+\]|[\w.-]{1,253}):\d{1,5}$/i.test(url)) return url;
  return httpUrl(url, cardUrl);
}

/** A card lies below its agent: `https://h/x/.well-known/agent-card.json` belongs to `https://h/x/`. */
function baseOf(cardUrl: string): string {
  return cardUrl.replace(/\/(\.well-known\/)?agent(-card)?\.json([?#][^]*)?$/, '/');
}
