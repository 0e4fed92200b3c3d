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
 * Reads a push configuration without its task (v1.0 section 4.3.1). `readScheme` reads the scheme as the version spells
 * it. Whether the url is allowed is not decided here. Token and credentials must fit into a header, because they are
 * sent in one.
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

/** True for the default values of the proto, which mean no authentication. */
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
