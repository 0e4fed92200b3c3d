import { isJsonObject, type JsonObject } from '../../../kernel/json.js';
import type { ClaimedInterface } from '../card-interfaces.js';
import { arrayMember, member, objectMember, stringMember } from '../members.js';
import type { AgentCard, SecurityRequirement, SecurityScheme } from '../model.js';

/**
 * Reads the interfaces of a v0.3 card: `url` with `preferredTransport` (default JSONRPC) first, then
 * `additionalInterfaces` (v0.3 section 5.6). Cards of 0.2 have only `url`, and often no `protocolVersion`.
 */
export function claimedInterfaces(card: JsonObject): ClaimedInterface[] {
  const version = stringMember(card, 'protocolVersion') ?? '0.3';
  const main = { url: stringMember(card, 'url'), binding: stringMember(card, 'preferredTransport'), version };
  const others = arrayMember(card, 'additionalInterfaces')
    .filter(isJsonObject)
    .map((entry) => ({ url: stringMember(entry, 'url'), binding: stringMember(entry, 'transport'), version }));
  return main.url === undefined ? others : [main, ...others];
}

/** True when the card offers its extended form to callers that authenticate (v0.3 section 5.5). */
export function hasExtendedCard(card: JsonObject): boolean {
  return member(card, 'supportsAuthenticatedExtendedCard') === true;
}

/** Converts a security scheme from its v0.3 (OpenAPI) shape to the v1.0 shape; undefined when its type is unknown. */
export function securityScheme({ type, in: location, ...rest }: JsonObject): SecurityScheme | undefined {
  if (type === 'apiKey') return { apiKeySecurityScheme: { ...rest, ...(location !== undefined && { location }) } };
  if (type === 'http') return { httpAuthSecurityScheme: rest };
  if (type === 'oauth2') return { oauth2SecurityScheme: rest };
  if (type === 'openIdConnect') return { openIdConnectSecurityScheme: rest };
  return type === 'mutualTLS' ? { mtlsSecurityScheme: rest } : undefined;
}

/**
 * Adds to the security schemes of a v0.3 card the members of its proto. REST clients read `/v1/card` in the JSON form
 * or in the proto form, and each ignores members that it does not know.
 */
export function withProtoSchemes(card: JsonObject): JsonObject {
  const schemes = Object.entries(objectMember(card, 'securitySchemes')).map(([name, scheme]) => [
    name,
    isJsonObject(scheme) ? { ...scheme, ...securityScheme(scheme) } : scheme,
  ]);
  return schemes.length === 0 ? card : { ...card, securitySchemes: Object.fromEntries(schemes) as JsonObject };
}

/**
 * Encodes the card of a published agent in v0.3 (v0.3 section 5.5): `url` with its transport instead of a list of
 * interfaces, security schemes in the shape of OpenAPI. Interfaces of other versions are omitted; one v0.3 interface
 * over JSON-RPC always exists.
 */
export function encodeCard(card: AgentCard): JsonObject {
  const { supportedInterfaces, capabilities, securitySchemes, securityRequirements, signatures, ...same } = card;
  const { extendedAgentCard, ...abilities } = capabilities;
  const interfaces = supportedInterfaces.filter(({ protocolVersion }) => protocolVersion === '0.3');
  const main = interfaces.find(({ protocolBinding }) => protocolBinding === 'JSONRPC') ?? interfaces[0];
  const written = {
    protocolVersion: '0.3',
    ...same,
    url: main?.url,
    preferredTransport: main?.protocolBinding,
    additionalInterfaces: interfaces.map(({ url, protocolBinding }) => ({ url, transport: protocolBinding })),
    capabilities: { ...abilities, stateTransitionHistory: false },
    securitySchemes: securitySchemes && mapValues(securitySchemes, openApiScheme),
    security: securityRequirements?.map(requirement),
    supportsAuthenticatedExtendedCard: extendedAgentCard ?? false,
    signatures,
  };
  return JSON.parse(JSON.stringify(written)) as JsonObject;
}

function openApiScheme(scheme: SecurityScheme): JsonObject {
  const { location, ...key } = scheme.apiKeySecurityScheme ?? {};
  if (scheme.apiKeySecurityScheme) return { type: 'apiKey', ...key, ...(location !== undefined && { in: location }) };
  if (scheme.httpAuthSecurityScheme) return { type: 'http', ...scheme.httpAuthSecurityScheme };
  if (scheme.oauth2SecurityScheme) return { type: 'oauth2', ...scheme.oauth2SecurityScheme };
  if (scheme.openIdConnectSecurityScheme) return { type: 'openIdConnect', ...scheme.openIdConnectSecurityScheme };
  return { type: 'mutualTLS', ...scheme.mtlsSecurityScheme };
}

function requirement({ schemes }: SecurityRequirement): JsonObject {
  return mapValues(schemes, ({ list }) => list);
}

function mapValues<Value, Result>(record: Readonly<Record<string, Value>>, map: (value: Value) => Result) {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]));
}
