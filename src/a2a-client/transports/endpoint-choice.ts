import { RialtoError } from '../../kernel/errors.js';
import { trimEnd } from '../../kernel/text.js';
import type { CardInterface, NormalisedCard } from '../../protocol/a2a/card/card.js';

/** One way to reach an agent: where, in which binding and version, with which routing key. */
export type Endpoint = CardInterface;

const overHttp = new Set<string>(['JSONRPC', 'HTTP+JSON']);
/** Where peers without a usable card answer JSON-RPC, newest habit first (AN-29, AN-30). */
const customaryPaths = ['/_agent-native/a2a', '/a2a'];

/** The interfaces of a card that we speak, in the card's order (v1.0 section 8.3.2); gRPC only when there is nothing else. */
export function chooseEndpoints(card: NormalisedCard): Endpoint[] {
  const spoken = card.interfaces.filter(({ binding }) => overHttp.has(binding));
  return spoken.length > 0 ? spoken : card.interfaces.filter(({ binding }) => binding === 'GRPC');
}

/** False for an agent whose card offers other bindings alone; one without a card is taken to speak JSON-RPC. */
export function speaksJsonRpc(card: NormalisedCard | undefined): boolean {
  return card === undefined || card.interfaces.some(({ binding }) => binding === 'JSONRPC');
}

/** Where the one-call form is posted: the card's JSON-RPC interface, else the URL the agent was registered by (RE-15). */
export function bridgeEndpoint(card: NormalisedCard | undefined, registeredUrl: string): Endpoint {
  const face = card?.interfaces.find(({ binding }) => binding === 'JSONRPC');
  return face ?? { url: registeredUrl, binding: 'JSONRPC', version: '0.3' };
}

/** The endpoint, then the customary paths below the agent's base URL; the next one only after `isNotHere` (AN-29, AN-30). */
export function withCustomaryPaths(first: Endpoint, baseUrl: string): Endpoint[] {
  if (first.binding === 'GRPC') return [first];
  const version = first.binding === 'JSONRPC' ? first.version : '0.3';
  const others = customaryPaths.map((path): Endpoint => ({ url: below(baseUrl, path), binding: 'JSONRPC', version }));
  return [first, ...others.filter(({ url }) => url !== first.url)];
}

/** Where a peer may answer whose card cannot be had: a URL with a path is the endpoint itself, a bare host hardly ever. */
export function endpointsWithoutCard(url: string): Endpoint[] {
  const itself: Endpoint = { url, binding: 'JSONRPC', version: '0.3' };
  const [first, ...customary] = withCustomaryPaths(itself, url);
  return new URL(url).pathname === '/' ? [...customary, first!] : [first!, ...customary];
}

/** True when nothing was asked because nobody lives at the URL: 404 or 405, and no JSON-RPC server said so (AN-30). */
export function isNotHere(error: unknown): boolean {
  if (!(error instanceof RialtoError) || error.code !== 'remote_transport') return false;
  const { httpStatus, remoteCode } = error.data ?? {};
  return (httpStatus === 404 || httpStatus === 405) && remoteCode === undefined;
}

/** True when both are URLs of one origin; a credential goes nowhere else than where it was given for (abuse 18). */
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
