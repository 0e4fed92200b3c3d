import type { Act, ActEnd } from '../kernel/verb-bus.js';
import type { ActRecorder } from '../platform/bus/ledger.js';
import type { RowChange, RowStatement } from '../platform/database/row-writer.js';
import { auditEventOf, isAudited, type AuditEvent } from './audit-event.js';

const insertEvent: RowStatement = {
  name: 'audit',
  sql: (rows) => `insert into audit_events (id, org_id, at, type, session_id, event)
    select (e->>'id')::uuid, (e->>'orgId')::uuid, (e->>'at')::timestamptz, e->>'type', e->>'sessionId', e from jsonb_array_elements(${rows}) e`,
};

const insertPending: RowStatement = {
  name: 'audit-pending',
  sql: (rows) => `insert into audit_pending (event_id, org_id)
    select (e->>'id')::uuid, (e->>'orgId')::uuid from jsonb_array_elements(${rows}) e`,
};

/** Returns the rows of an event: the event itself and its entry in the queue of the sealer. */
export function auditRows(event: AuditEvent): RowChange[] {
  return [
    { statement: insertEvent, row: event },
    { statement: insertPending, row: { id: event.id, orgId: event.orgId } },
  ];
}

/** Records every write and every denial. */
export const auditRecorder: ActRecorder = {
  end: (act: Act, end: ActEnd): RowChange[] => (isAudited(act, end) ? auditRows(auditEventOf(act, end)) : []),
};
