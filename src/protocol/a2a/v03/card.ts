import { isJsonObject, type JsonObject } from '../../../kernel/json.js';
import type { ClaimedInterface } from '../card-interfaces.js';
import { arrayMember, member, stringMember } from '../members.js';
import type { SecurityScheme } from '../model.js';

/**
 * The interfaces of a v0.3 card: `url` with `preferredTransport` (default JSONRPC) first, then `additionalInterfaces`
 * (v0.3 section 5.6). Cards of 0.2 have only `url`, and often no `protocolVersion`.
 */
export function claimedInterfaces(card: JsonObject): ClaimedInterface[] {
  const version = stringMember(card, 'protocolVersion') ?? '0.3';
  const main = { url: stringMember(card, 'url'), binding: stringMember(card, 'preferredTransport'), version };
  const others = arrayMember(card, 'additionalInterfaces')
    .filter(isJsonObject)
    .map((face) => ({ url: stringMember(face, 'url'), binding: stringMember(face, 'transport'), version }));
  return main.url === undefined ? others : [main, ...others];
}

/** True when the card offers its extended form to callers that authenticate (v0.3 section 5.5). */
export function hasExtendedCard(card: JsonObject): boolean {
  return member(card, 'supportsAuthenticatedExtendedCard') === true;
}

/** A security scheme in its v0.3 (OpenAPI) shape to the v1.0 one; undefined when its type is unknown. */
export function securityScheme({ type, in: location, ...rest }: JsonObject): SecurityScheme | undefined {
  if (type === 'apiKey') return { apiKeySecurityScheme: { ...rest, ...(location !== undefined && { location }) } };
  if (type === 'http') return { httpAuthSecurityScheme: rest };
  if (type === 'oauth2') return { oauth2SecurityScheme: rest };
  if (type === 'openIdConnect') return { openIdConnectSecurityScheme: rest };
  return type === 'mutualTLS' ? { mtlsSecurityScheme: rest } : undefined;
}
