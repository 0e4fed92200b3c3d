import { RialtoError } from '../kernel/errors.js';
import { actions } from '../kernel/verbs.js';
import type { Act, ActEnd } from '../kernel/verb-bus.js';
import type { ActRecorder } from '../platform/bus/ledger.js';
import type { RowChange, RowStatement } from '../platform/database/row-writer.js';
import { auditEventOf, isAudited, subjectsOf, type AuditEvent, type EventDraft } from './audit-event.js';
import { sealFacts } from './personal/personal-facts.js';
import type { KeyRing, SubjectKeys } from './personal/subject-keys.js';

/** Stores the members of an event that have a column only there (`wholeEvent`). */
const insertEvent: RowStatement = {
  name: 'audit',
  sql: (rows) => `
    insert into audit_events (id, org_id, at, type, session_id, event)
    select (e->>'id')::uuid, (e->>'orgId')::uuid, (e->>'at')::timestamptz, e->>'type',
      nullif(e->>'sessionId', e->>'id'), e - '{id,orgId,at,type,sessionId}'::text[]
    from jsonb_array_elements(${rows}) e`,
};

const insertPending: RowStatement = {
  name: 'audit-pending',
  sql: (rows) => `
    insert into audit_pending (event_id, org_id)
    select (e->>'id')::uuid, (e->>'orgId')::uuid
    from jsonb_array_elements(${rows}) e`,
};

/** Returns the rows of an event: the event itself and its entry in the queue of the sealer. */
export function auditRows(event: AuditEvent): RowChange[] {
  return [
    { statement: insertEvent, row: event },
    { statement: insertPending, row: { id: event.id, orgId: event.orgId } },
  ];
}

/** Seals the personal facts of an event. Throws `internal` for a subject that is not in the ring. */
export function sealedEvent({ event, personal }: EventDraft, ring: KeyRing): AuditEvent {
  if (personal.length === 0) return event;
  const sealed = personal.map(({ subject, facts }) => {
    const key = ring.get(subject);
    if (!key) throw new RialtoError('internal', { message: 'the personal facts of an event have no key' });
    return sealFacts(event, key, facts);
  });
  return { ...event, sealed };
}

/** Records every write and every denial. */
export class AuditRecorder implements ActRecorder {
  private readonly rings = new WeakMap<Act, KeyRing>();

  constructor(private readonly keys: SubjectKeys) {}

  prepare(act: Act, isDenied: boolean): Promise<void> | undefined {
    if (!isDenied && actions[act.action].kind !== 'write') return undefined;
    const ring = this.keys.ringOf(act.ctx.org.id, subjectsOf(act));
    if (ring instanceof Promise) return ring.then((loaded) => void this.rings.set(act, loaded));
    this.rings.set(act, ring);
    return undefined;
  }

  end(act: Act, end: ActEnd): RowChange[] {
    if (!isAudited(act, end)) return [];
    return auditRows(sealedEvent(auditEventOf(act, end), this.rings.get(act) ?? new Map()));
  }
}
