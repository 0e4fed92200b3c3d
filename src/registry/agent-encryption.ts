import { RialtoError } from '../kernel/errors.js';
import { isEncrypted } from '../protocol/a2a/encrypted-parts.js';
import { cleartext } from '../protocol/a2a/media-types.js';
import type { Part } from '../protocol/a2a/model.js';
import { e2eeUri } from '../protocol/e2ee/card-extension.js';
import type { RegisteredAgent } from './registry.types.js';

/** True when the card of a registered agent states that the agent refuses these parts, as they are not encrypted. */
export function refusesCleartext({ card }: RegisteredAgent, parts: readonly Part[]): boolean {
  return card?.requiredExtensions?.includes(e2eeUri) === true && !isEncrypted(parts);
}

/** Returns the refusal of a message that its agent would refuse as cleartext (RI-06); undefined for any other one. */
export function cleartextRefusal(agent: RegisteredAgent, parts: readonly Part[]): RialtoError | undefined {
  if (!refusesCleartext(agent, parts)) return undefined;
  return new RialtoError('content_type_not_supported', {
    message: `this agent does not take ${cleartext}`,
    data: { reason: 'cleartext' },
    hint: `its card requires ${e2eeUri}: send data parts with encrypted_payload, with the keys that the card names`,
  });
}
