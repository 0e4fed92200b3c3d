import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import type { CredentialStore } from '../auth/credential.store.js';

/** Returns the context of an act of the operator on an org. Throws `not_found`. */
export async function operatorContext(store: CredentialStore, slug: string): Promise<CallContext> {
  const org = await store.orgBySlug(slug);
  if (!org) throw new RialtoError('not_found', { message: `there is no org "${slug}"` });
  const principal = { kind: 'service', id: 'rialto-cli', role: 'admin', groups: [] } as const;
  return { org, principal, surface: 'system', requestId: newId(), depth: 0 };
}
