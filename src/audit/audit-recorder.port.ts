import type { Pg } from '../platform/database/pg.js';
import type { Vault } from '../platform/secrets/vault.js';
import { AuditRecorder } from './audit.recorder.js';
import { SubjectKeyStore } from './personal/subject-key.store.js';
import { SubjectKeys } from './personal/subject-keys.js';

/**
 * Creates the recorder for ledgers outside the running application, such as the operator's command: its acts are
 * audited too.
 */
export function auditRecorderOn(pg: Pg, vault: Vault): AuditRecorder {
  return new AuditRecorder(new SubjectKeys(new SubjectKeyStore(pg), vault));
}
