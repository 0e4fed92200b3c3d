import { hash } from 'node:crypto';
import { storableText, type JsonObject } from '../kernel/json.js';
import { actions } from '../kernel/verbs.js';
import type { Act, ActEnd } from '../kernel/verb-bus.js';
import { redact } from '../platform/secrets/redact.js';

/** An audit event, as it is stored, hashed and shown. Of arguments it has the size and hash, never the content. */
export interface AuditEvent {
  id: string;
  orgId: string;
  /** ISO 8601 with milliseconds. */
  at: string;
  /** The Cedar action of an act, or the name of a security fact such as `token.tenant_mismatch`. */
  type: string;
  [fact: string]: unknown;
}

/** The audit event of an act. */
export interface ActEvent extends AuditEvent {
  verb: string;
  /** The alias of a tool (RE-09), even when the caller used another name. */
  legacyAlias?: string;
  /** The name that the caller used for a tool. */
  calledAs?: string;
  action: string;
  principal: { kind: string; id: string; role: string };
  resource: { type: string; id: string };
  sessionId: string;
  requestId: string;
  surface: string;
  outcome: string;
  durationMs: number;
  decision?: { allowed: boolean; policies: string[]; reason: string; version?: string };
}

/** Returns whether an act is audited: writes always, reads only when they were denied (decisions: identity). */
export function isAudited(act: Pick<Act, 'action'>, end: ActEnd): boolean {
  return actions[act.action].kind === 'write' || end.outcome === 'denied';
}

/** Returns the audit event of an ended act. Pure. */
export function auditEventOf(act: Act, end: ActEnd): ActEvent {
  const { principal } = act.ctx;
  return {
    id: act.id,
    orgId: act.ctx.org.id,
    at: new Date(act.startedAt).toISOString(),
    type: act.action,
    verb: storableText(act.verb, 256),
    action: act.action,
    legacyAlias: act.legacyAlias && storableText(act.legacyAlias, 256),
    calledAs: act.calledAs && storableText(act.calledAs, 256),
    principal: { kind: principal.kind, id: storableText(principal.id, 256), role: principal.role },
    resource: { type: act.resource.type, id: storableText(act.resource.id, 256) },
    agentCardId: act.agent?.id,
    agentUrl: act.agent?.url,
    skillId: act.skillId && storableText(act.skillId, 256),
    sessionId: act.sessionId,
    requestId: act.ctx.requestId,
    surface: act.ctx.surface,
    depth: act.ctx.depth,
    traceId: act.ctx.trace?.traceId,
    args: act.args && digest(act.args),
    decision: act.decision && {
      allowed: act.decision.allowed,
      policies: [...act.decision.policies],
      reason: storableText(act.decision.reason, 500),
      version: act.decision.version,
    },
    outcome: end.outcome,
    durationMs: end.durationMs,
    error: end.error && { code: end.error.code, message: storableText(redact(end.error.message) as string, 500) },
  };
}

/** Returns size and hash of the arguments, as they are sent on. It never fails, so that every act can be recorded. */
function digest(args: JsonObject): { bytes: number; sha256: string } {
  const text = JSON.stringify(args);
  return { bytes: Buffer.byteLength(text), sha256: hash('sha256', text, 'hex') };
}
