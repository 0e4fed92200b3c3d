import { defined } from '../request/defined.js';
import type { Fields } from '../request/fields.js';
import type { PushConfig } from '../request/operations.js';
import { pushConfigFields, schemeRule } from '../request/push-fields.js';

/**
 * Reads a PushNotificationConfig (v0.3 section 6.8). Only the first of its `schemes` counts; without schemes there is
 * no authentication.
 */
export function readPushConfig(fields: Fields): Omit<PushConfig, 'taskId'> {
  return defined(pushConfigFields(fields, readScheme));
}

function readScheme(authentication: Fields): string | undefined {
  const [first] = authentication.texts('schemes', 20, schemeRule) ?? [];
  const scheme = first ?? authentication.text('scheme', schemeRule);
  if (scheme === undefined && authentication.text('credentials', { empty: 'absent' }) !== undefined) {
    authentication.refuse('schemes', 'must name a scheme for the credentials');
  }
  return scheme;
}
