import type { Schema } from '../protobuf/codec.js';
import { enumOf, flag, int, listOf, mapOf, of, text, texts } from '../protobuf/fields.js';

/* Messages with the same field numbers in a2a.proto of v1.0 and of v0.3. */

export const role = enumOf('ROLE_', 'UNSPECIFIED', 'USER', 'AGENT');

export const provider: Schema = { url: text(1), organization: text(2) };

const stringList: Schema = { list: texts(1) };
/** `SecurityRequirement`; its name in v0.3 is `Security`. */
export const requirement: Schema = { schemes: mapOf(1, { message: stringList }) };

export const skill = (requirements: string): Schema => ({
  id: text(1),
  name: text(2),
  description: text(3),
  tags: texts(4),
  examples: texts(5),
  inputModes: texts(6),
  outputModes: texts(7),
  [requirements]: listOf(8, requirement),
});

const scopes = (number: number) => mapOf(number, 'text');
const tokenFlow: Schema = { tokenUrl: text(1), refreshUrl: text(2), scopes: scopes(3) };
const flows: Schema = {
  authorizationCode: of(1, {
    authorizationUrl: text(1),
    tokenUrl: text(2),
    refreshUrl: text(3),
    scopes: scopes(4),
    pkceRequired: flag(5),
  }),
  clientCredentials: of(2, tokenFlow),
  implicit: of(3, { authorizationUrl: text(1), refreshUrl: text(2), scopes: scopes(3) }),
  password: of(4, tokenFlow),
  deviceCode: of(5, { deviceAuthorizationUrl: text(1), tokenUrl: text(2), refreshUrl: text(3), scopes: scopes(4) }),
};
export const securityScheme: Schema = {
  apiKeySecurityScheme: of(1, { description: text(1), location: text(2), name: text(3) }),
  httpAuthSecurityScheme: of(2, { description: text(1), scheme: text(2), bearerFormat: text(3) }),
  oauth2SecurityScheme: of(3, { description: text(1), flows: of(2, flows), oauth2MetadataUrl: text(3) }),
  openIdConnectSecurityScheme: of(4, { description: text(1), openIdConnectUrl: text(2) }),
  mtlsSecurityScheme: of(5, { description: text(1) }),
};

export const extension = (params: Schema[string]): Schema => ({
  uri: text(1),
  description: text(2),
  required: flag(3),
  params,
});

export const page = { pageSize: int(2), pageToken: text(3) };
