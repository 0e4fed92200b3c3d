import { z } from 'zod';
import { HeaderName, HeaderValue } from '../../platform/http/params.js';
import { Quarantine, userCredentials } from '../upstream.types.js';

/**
 * `PUT /api/mcp/servers/{id}/credential`: a value for each header that the server requires of its users, and no other
 * header.
 */
export const GiveCredential = z.strictObject({ headers: z.record(HeaderName, HeaderValue) });
export type GiveCredential = z.output<typeof GiveCredential>;

/** Shows which headers the server requires of the caller, and when the caller set them. Values are never returned. */
export const OwnCredentialView = z.object({
  server: z.string(),
  userCredentials: z.enum(userCredentials),
  headers: z.array(z.string()),
  /** Null when the caller has set no credential, or only one for another address. */
  since: z.iso.datetime().nullable(),
});
export type OwnCredentialView = z.output<typeof OwnCredentialView>;

const HeldTool = Quarantine.extend({ name: z.string() });

/** Shows which caller has set a credential; for admins. */
export const UserCredentialView = z.object({
  id: z.string(),
  principal: z.object({ kind: z.string(), id: z.string() }),
  since: z.iso.datetime(),
  /** Tools with definitions that changed for this user, by their names at the server. */
  quarantine: z.array(HeldTool),
});
export type UserCredentialView = z.output<typeof UserCredentialView>;

/** One credential, with the current definitions of its quarantined tools. */
export const UserCredentialDetails = UserCredentialView.extend({
  quarantine: z.array(HeldTool.extend({ tool: z.record(z.string(), z.unknown()) })),
});
export type UserCredentialDetails = z.output<typeof UserCredentialDetails>;
