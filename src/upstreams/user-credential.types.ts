import { z } from 'zod';
import { HeaderName, HeaderValue } from '../platform/http/params.js';
import { userCredentials } from './upstream.types.js';

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

/** Who has given a credential, for admins. */
export const UserCredentialView = z.object({
  id: z.string(),
  principal: z.object({ kind: z.string(), id: z.string() }),
  since: z.iso.datetime(),
});
export type UserCredentialView = z.output<typeof UserCredentialView>;
