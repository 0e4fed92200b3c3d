import { RialtoError } from '../../kernel/errors.js';
import { trimEnd } from '../../kernel/text.js';
import type { CardInterface, NormalisedCard } from '../../protocol/a2a/card/card.js';

/** One way to reach an agent: URL, binding, version and routing key. */
export type Endpoint = CardInterface;

const overHttp = new Set<string>(['JSONRPC', 'HTTP+JSON']);
/** Paths where peers without a usable card answer JSON-RPC, newest convention first (AN-29, AN-30). */
const customaryPaths = ['/_agent-native/a2a', '/a2a'];

/**
 * Returns the interfaces of a card that the gateway supports, in the order of the card (v1.0 section 8.3.2); gRPC only
 * when the card offers nothing else.
 */
export function chooseEndpoints(card: NormalisedCard): Endpoint[] {
  const spoken = card.interfaces.filter(({ binding }) => overHttp.has(binding));
  return spoken.length > 0 ? spoken : card.interfaces.filter(({ binding }) => binding === 'GRPC');
}

/** False for an agent with a card that offers no JSON-RPC; an agent without a card is expected to support it. */
export function speaksJsonRpc(card: NormalisedCard | undefined): boolean {
  return card === undefined || card.interfaces.some(({ binding }) => binding === 'JSONRPC');
}

/**
 * Returns the endpoint for the one-call form: the card's JSON-RPC interface, else the URL that the agent was
 * registered with (RE-15).
 */
export function bridgeEndpoint(card: NormalisedCard | undefined, registeredUrl: string): Endpoint {
  const face = card?.interfaces.find(({ binding }) => binding === 'JSONRPC');
  return face ?? { url: registeredUrl, binding: 'JSONRPC', version: '0.3' };
}

/**
 * Returns the endpoint, then the customary paths below the agent's base URL; callers go to the next one only after
 * `isNotHere` (AN-29, AN-30).
 */
export function withCustomaryPaths(first: Endpoint, baseUrl: string): Endpoint[] {
  if (first.binding === 'GRPC') return [first];
  const version = first.binding === 'JSONRPC' ? first.version : '0.3';
  const others = customaryPaths.map((path): Endpoint => ({ url: below(baseUrl, path), binding: 'JSONRPC', version }));
  return [first, ...others.filter(({ url }) => url !== first.url)];
}

/**
 * Returns the endpoints to try for a peer without a card: a URL with a path is probably the endpoint itself, a bare
 * host rarely is.
 */
export function endpointsWithoutCard(url: string): Endpoint[] {
  const itself: Endpoint = { url, binding: 'JSONRPC', version: '0.3' };
  const [first, ...customary] = withCustomaryPaths(itself, url);
  return new URL(url).pathname === '/' ? [...customary, first!] : [first!, ...customary];
}

/** True when the request reached no A2A server: HTTP 404 or 405, without a JSON-RPC error in the answer (AN-30). */
export function isNotHere(error: unknown): boolean {
  if (!(error instanceof RialtoError) || error.code !== 'remote_transport') return false;
  const { httpStatus, remoteCode } = error.data ?? {};
  return (httpStatus === 404 || httpStatus === 405) && remoteCode === undefined;
}

/** True when both URLs have the same origin; a credential is sent only to the origin it was given for (abuse 18). */
export function isSameOrigin(one: string, other: string): boolean {
  if (!URL.canParse(one) || !URL.canParse(other)) return false;
  const { origin } = new URL(one);
  // Every URL that is not http(s) has the origin "null".
  return origin !== 'null' && origin === new URL(other).origin;
}

function below(baseUrl: string, path: string): string {
  const url = new URL(baseUrl);
  return `${url.origin}${trimEnd(url.pathname, '/')}${path}`;
}
