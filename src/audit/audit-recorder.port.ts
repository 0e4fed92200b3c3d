/**
 * Exports the recorder for ledgers outside the running application, such as the operator's command: its acts are
 * audited too.
 */
export { auditRecorder } from './audit.recorder.js';
