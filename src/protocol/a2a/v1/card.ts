import { isJsonObject, type JsonObject } from '../../../kernel/json.js';
import type { ClaimedInterface } from '../card-interfaces.js';
import { arrayMember, member, objectMember, stringMember } from '../members.js';
import type { AgentCard, SecurityScheme } from '../model.js';

const wrappers = [
  'apiKeySecurityScheme',
  'httpAuthSecurityScheme',
  'oauth2SecurityScheme',
  'openIdConnectSecurityScheme',
  'mtlsSecurityScheme',
] as const;

/**
 * Reads the interfaces of a v1.0 card, in order of preference (section 8.3.2). An entry without a version counts as
 * v1.0.
 */
export function claimedInterfaces(card: JsonObject): ClaimedInterface[] {
  return arrayMember(card, 'supportedInterfaces')
    .filter(isJsonObject)
    .map((entry) => ({
      url: stringMember(entry, 'url'),
      binding: stringMember(entry, 'protocolBinding') ?? stringMember(entry, 'transport'),
      version: stringMember(entry, 'protocolVersion'),
      tenant: stringMember(entry, 'tenant'),
    }));
}

/** True when the card offers its extended form to callers that authenticate (section 3.1.11). */
export function hasExtendedCard(card: JsonObject): boolean {
  return member(objectMember(card, 'capabilities'), 'extendedAgentCard') === true;
}

/** Reads a security scheme in its v1.0 shape with one wrapper key (section 4.5); undefined when it has none. */
export function securityScheme(scheme: JsonObject): SecurityScheme | undefined {
  for (const wrapper of wrappers) {
    const inner = member(scheme, wrapper);
    if (isJsonObject(inner)) return { [wrapper]: inner };
  }
  return undefined;
}

/** Encodes the card of a published agent in v1.0 (section 4.4.1): the model itself, without undefined members. */
export function encodeCard(card: AgentCard): JsonObject {
  return JSON.parse(JSON.stringify(card)) as JsonObject;
}
