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

/**
 * An event with its position in the chain. The hash covers the event without `chain`, `personal` and the members that
 * `personal.opened` names.
 */
export const AuditEventView = z.looseObject({
  id: z.string(),
  orgId: z.string(),
  at: z.string(),
  type: z.string(),
  /** Present when the event has sealed facts: the JSON pointers of those that were opened. */
  personal: z.object({ opened: z.array(z.string()), erased: z.boolean() }).optional(),
  chain: z.object({ sequence: z.number(), prevHash: z.string(), hash: z.string() }).nullable(),
});
export type AuditEventView = z.output<typeof AuditEventView>;

export const DecisionView = z.object({
  id: z.string(),
  at: z.string(),
  /** The id is null after its erasure. */
  principal: z.object({ kind: z.string(), id: z.string().nullable(), role: z.string() }),
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
  /** Null when a person gave the reason and was erased. */
  reason: z.string().nullable(),
  policyVersion: z.string().nullable(),
  /** The approval that the act used. */
  approvalId: z.string().nullable(),
});
export type DecisionView = z.output<typeof DecisionView>;

/** The subject of an erasure. */
export const ErasureRequest = z.strictObject({
  kind: z.enum(['user', 'agent', 'service', 'anonymous']),
  id: z.string().min(1).max(1_000),
});
export type ErasureRequest = z.output<typeof ErasureRequest>;

/** The ids of the deleted keys, as sealed facts name them. */
export const Erasure = z.object({ keys: z.array(z.string()) });
export type Erasure = z.output<typeof Erasure>;

/**
 * Result of a verification (RE-84). `unverifiable`: nothing contradicts the chain, but a key is missing, of a signature
 * or, without a recorded erasure, of personal facts. Sequences are null for an empty chain.
 */
export const Verification = z.object({
  valid: z.boolean(),
  verdict: z.enum(['intact', 'changed', 'unverifiable']),
  eventCount: z.number(),
  firstSequence: z.number().nullable(),
  lastSequence: z.number().nullable(),
  /** The first invalid event, or the first one that no checkpoint confirms; null unless the verdict is `changed`. */
  brokenAt: z.number().nullable(),
  unsealed: z.number(),
  /** Number of the newest checkpoint; null when there is none. */
  lastCheckpoint: z.number().nullable(),
  reason: z.string().optional(),
});
export type Verification = z.output<typeof Verification>;

/** A public key as a JWK (RFC 8037 section 2). */
export const PublicKey = z.looseObject({
  kid: z.string(),
  kty: z.literal('OKP'),
  crv: z.literal('Ed25519'),
  x: z.string(),
});

export const Jwks = z.object({ keys: z.array(PublicKey) });
