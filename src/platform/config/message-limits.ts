import { flag, setting, whole } from './setting-shapes.js';

/** Settings that limit the messages of an org; all of them are off by default. */
export const messageLimits = {
  RIALTO_MAX_PAYLOAD_BYTES: setting(
    whole(1_024, 64 * 1_048_576).optional(),
    'no limit of its own',
    'largest parts of one A2A message, as JSON; an `encrypted_payload` has at most 131072 bytes in any case',
  ),
  RIALTO_MAX_METADATA_BYTES: setting(
    whole(256, 64 * 1_048_576).optional(),
    'no limit of its own',
    'largest metadata of one A2A message, as JSON; that of an encrypted message has at most 4096 bytes in any case',
  ),
  RIALTO_TRUST_QUOTAS: setting(
    flag.default(false),
    '`false`',
    'limit agents, messages a day, groups and webhooks of each org by its trust tier',
  ),
};
