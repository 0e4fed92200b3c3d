import { z } from 'zod';
import { HeaderName, HeaderValue } from '../../platform/http/params.js';
import { Quarantine, userCredentials } from '../upstream.types.js';

/** `PUT /api/mcp/servers/{id}/credential`: each of the headers that the server wants of its users, and no other. */
export const GiveCredential = z.strictObject({ headers: z.record(HeaderName, HeaderValue) });
export type GiveCredential = z.output<typeof GiveCredential>;

/** What a server wants of its caller, and since when it has it. Values never leave. */
export const OwnCredentialView = z.object({
  server: z.string(),
  userCredentials: z.enum(userCredentials),
  headers: z.array(z.string()),
  /** Null: the caller has given none, or for another place. */
  since: z.iso.datetime().nullable(),
});
export type OwnCredentialView = z.output<typeof OwnCredentialView>;

const HeldTool = Quarantine.extend({ name: z.string() });

/** Who has given a credential, for admins. */
export const UserCredentialView = z.object({
  id: z.string(),
  principal: z.object({ kind: z.string(), id: z.string() }),
  since: z.iso.datetime(),
  /** Tools that are said otherwise to this user than they were, by the names that the server has for them. */
  quarantine: z.array(HeldTool),
});
export type UserCredentialView = z.output<typeof UserCredentialView>;

/** One of them, with what the server says of these tools. */
export const UserCredentialDetails = UserCredentialView.extend({
  quarantine: z.array(HeldTool.extend({ tool: z.record(z.string(), z.unknown()) })),
});
export type UserCredentialDetails = z.output<typeof UserCredentialDetails>;
