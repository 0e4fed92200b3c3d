import { defined } from './defined.js';
import type { Fields, TextRule } from './fields.js';
import { limits } from './limits.js';
import { idRule } from './message-fields.js';
import type { PushConfig } from './operations.js';

export const schemeRule: TextRule = { max: limits.scheme, header: true };
const urlRule: TextRule = { max: limits.url };
const tokenRule: TextRule = { max: limits.token, empty: 'absent', header: true };
const credentialsRule: TextRule = { max: limits.credentials, empty: 'absent', header: true };

/**
 * A push configuration without its task (v1.0 section 4.3.1). `readScheme` knows how the version spells the scheme. Where the url may
 * point is not decided here; token and credentials have to fit in a header, since that is where they go.
 */
export function pushConfigFields(
  fields: Fields,
  readScheme: (authentication: Fields) => string | undefined,
): Omit<PushConfig, 'taskId'> {
  return defined({
    id: fields.text('id', { ...idRule, empty: 'absent' }),
    url: fields.requiredText('url', urlRule),
    token: fields.text('token', tokenRule),
    authentication: authenticationFields(fields, readScheme),
  });
}

/** Printed defaults of the proto are no authentication. */
function isBlank(authentication: Fields): boolean {
  return ['scheme', 'credentials'].every((name) => authentication.value(name) === '');
}

function authenticationFields(
  fields: Fields,
  readScheme: (authentication: Fields) => string | undefined,
): PushConfig['authentication'] {
  const authentication = fields.child('authentication');
  if (!authentication || isBlank(authentication)) return undefined;
  const scheme = readScheme(authentication);
  const credentials = authentication.text('credentials', credentialsRule);
  return scheme === undefined ? undefined : defined({ scheme, credentials });
}
