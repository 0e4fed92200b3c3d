import { hash } from 'node:crypto';
import { callerOf } from '../kernel/call-context.js';
import { storableText, type JsonObject } from '../kernel/json.js';
import { actions } from '../kernel/verbs.js';
import type { Act, ActEnd } from '../kernel/verb-bus.js';
import { redact } from '../platform/secrets/redact.js';
import { subjectOf, type PersonalFacts, type SealedFacts } from './personal/personal-facts.js';

/**
 * An audit event, as it is stored and hashed. Personal facts are only in `sealed`. Of arguments it has the size and
 * hash, never the content.
 */
export interface AuditEvent {
  id: string;
  orgId: string;
  /** ISO 8601 with milliseconds. */
  at: string;
  /** The Cedar action of an act, or the name of a security fact such as `token.tenant_mismatch`. */
  type: string;
  /** Absent in an event without personal facts, and in one that was written before they were sealed. */
  sealed?: SealedFacts[];
  [fact: string]: unknown;
}

/** The audit event of an act, with its personal facts as far as they can be read. */
export interface ActEvent extends AuditEvent {
  verb: string;
  /** The alias of a tool (RE-09), even when the caller used another name. */
  legacyAlias?: string;
  /** The name that the caller used for a tool. */
  calledAs?: string;
  action: string;
  principal: { kind: string; id?: string; role: string };
  resource: { type: string; id: string };
  sessionId: string;
  requestId: string;
  surface: string;
  outcome: string;
  durationMs: number;
  decision?: {
    allowed: boolean;
    policies: string[];
    reason?: string;
    version?: string;
    /** The approval that the act used, and the caller who gave it. */
    approval?: { id: string; by?: string };
  };
}

/** Returns whether an act is audited: writes always, reads only when they were denied (decisions: identity). */
export function isAudited(act: Pick<Act, 'action'>, end: ActEnd): boolean {
  return actions[act.action].kind === 'write' || end.outcome === 'denied';
}

/** An event, and the personal facts that are sealed into it. */
export interface EventDraft<Event extends AuditEvent = AuditEvent> {
  readonly event: Event;
  readonly personal: readonly PersonalFacts[];
}

/** Returns the subjects of the facts in the event of an act: the caller, and the person who decided about it. */
export function subjectsOf({ ctx, decision }: Pick<Act, 'ctx' | 'decision'>): string[] {
  const caller = subjectOf(callerOf(ctx.principal));
  const decider = decision?.by === undefined ? caller : subjectOf(decision.by);
  return decider === caller ? [caller] : [caller, decider];
}

/** Returns the audit event of an ended act. Pure. */
export function auditEventOf(act: Act, end: ActEnd): EventDraft<ActEvent> {
  const { principal } = act.ctx;
  const { decision } = act;
  const event: ActEvent = {
    id: act.id,
    orgId: act.ctx.org.id,
    at: new Date(act.startedAt).toISOString(),
    type: act.action,
    verb: storableText(act.verb, 256),
    action: act.action,
    legacyAlias: act.legacyAlias && storableText(act.legacyAlias, 256),
    calledAs: act.calledAs && storableText(act.calledAs, 256),
    principal: { kind: principal.kind, role: principal.role },
    resource: { type: act.resource.type, id: storableText(act.resource.id, 256) },
    agentCardId: act.agent?.id,
    agentUrl: act.agent?.url,
    skillId: act.skillId && storableText(act.skillId, 256),
    sessionId: act.sessionId,
    requestId: act.ctx.requestId,
    surface: act.ctx.surface,
    depth: act.ctx.depth,
    traceId: act.ctx.trace?.traceId,
    decision: decision && {
      allowed: decision.allowed,
      policies: [...decision.policies],
      ...(decision.by === undefined && { reason: storableText(decision.reason, 500) }),
      version: decision.version,
      ...(decision.approval && { approval: { id: decision.approval.id } }),
    },
    outcome: end.outcome,
    durationMs: end.durationMs,
    error: end.error && { code: end.error.code },
  };
  return { event, personal: personalFactsOf(act, end) };
}

/** The error of a denial repeats the reason of the decision, so it belongs to the person who decided. */
function personalFactsOf(act: Act, end: ActEnd): PersonalFacts[] {
  const { args, ctx, decision } = act;
  const [caller, decider = caller] = subjectsOf(act) as [string, string?];
  const error = end.error && { error: { message: storableText(redact(end.error.message) as string, 500) } };
  const isDeciders = decision?.by !== undefined && end.outcome === 'denied';
  const ofCaller: JsonObject = {
    principal: { id: storableText(ctx.principal.id, 256) },
    ...(args && { args: digest(args) }),
    ...(error && !isDeciders && error),
  };
  if (decision?.by === undefined) return [{ subject: caller, facts: ofCaller }];
  const { approval, by, reason } = decision;
  const ofDecider: JsonObject = {
    decision: { reason: storableText(reason, 500), ...(approval && { approval: { by: storableText(by, 300) } }) },
    ...(error && isDeciders && error),
  };
  return [
    { subject: caller, facts: ofCaller },
    { subject: decider, facts: ofDecider },
  ];
}

/** Returns size and hash of the arguments, as they are sent on. It never fails, so that every act can be recorded. */
function digest(args: JsonObject): { bytes: number; sha256: string } {
  const text = JSON.stringify(args);
  return { bytes: Buffer.byteLength(text), sha256: hash('sha256', text, 'hex') };
}
