import { z } from 'zod';
import { Moment } from '../platform/http/params.js';

export const AuditQuery = z.strictObject({
  type: z.string().max(100).optional(),
  sessionId: z.string().max(256).optional(),
  from: Moment.optional(),
  to: Moment.optional(),
  limit: z.coerce.number().int().min(1).max(500).default(50),
  cursor: z.string().max(500).optional(),
});
export type AuditQuery = z.output<typeof AuditQuery>;

export const DecisionQuery = z.strictObject({ ...AuditQuery.shape, decision: z.enum(['allow', 'deny']).optional() });
export type DecisionQuery = z.output<typeof DecisionQuery>;

/** An event with its position in the chain. The hash covers the event without `chain`. */
export const AuditEventView = z.looseObject({
  id: z.string(),
  orgId: z.string(),
  at: z.string(),
  type: z.string(),
  chain: z.object({ sequence: z.number(), prevHash: z.string(), hash: z.string() }).nullable(),
});
export type AuditEventView = z.output<typeof AuditEventView>;

export const DecisionView = z.object({
  id: z.string(),
  at: z.string(),
  principal: z.object({ kind: z.string(), id: z.string(), role: z.string() }),
  action: z.string(),
  resource: z.object({ type: z.string(), id: z.string() }),
  verb: z.string(),
  /** The alias of a tool; `calledAs` is the name that the caller used (RE-09). */
  legacyAlias: z.string().nullable(),
  calledAs: z.string().nullable(),
  surface: z.string(),
  outcome: z.string(),
  requestId: z.string(),
  sessionId: z.string(),
  decision: z.enum(['allow', 'deny']),
  policyIds: z.array(z.string()),
  reason: z.string(),
  policyVersion: z.string().nullable(),
});
export type DecisionView = z.output<typeof DecisionView>;

/**
 * Result of a verification (RE-84). `unverifiable`: nothing contradicts the chain, but a signature could not be
 * checked, because its key is missing. Sequences are null for an empty chain.
 */
export const Verification = z.object({
  valid: z.boolean(),
  verdict: z.enum(['intact', 'changed', 'unverifiable']),
  eventCount: z.number(),
  firstSequence: z.number().nullable(),
  lastSequence: z.number().nullable(),
  /** The first invalid event; null unless the verdict is `changed`. */
  brokenAt: z.number().nullable(),
  unsealed: z.number(),
  /** Number of the newest checkpoint; null when there is none. */
  lastCheckpoint: z.number().nullable(),
  reason: z.string().optional(),
});
export type Verification = z.output<typeof Verification>;
