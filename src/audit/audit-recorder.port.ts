/** For ledgers outside the running application, such as the operator's command: what it does is audited as well. */
export { auditRecorder } from './audit.recorder.js';
