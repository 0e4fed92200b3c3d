import { z } from 'zod';
import { lifetimeOf } from '../policy/policy.types.js';

const approvalStates = ['pending', 'approved', 'denied', 'used', 'expired'] as const;

/** The answer of an approver. */
export const DecideApproval = z.strictObject({
  decision: z.enum(['approve', 'deny']),
  /** Shown to the caller when the act is refused, and kept in the audit. */
  reason: z.string().trim().min(1).max(500).optional(),
  /** How many times the same act may run. */
  uses: z.int().min(1).max(100).default(1),
  /** How long the approval can be used, e.g. `10m`. Default: the time that the policy gives. */
  expiresIn: z
    .string()
    .refine((text) => lifetimeOf(text) !== undefined, { message: 'must be a time from "1s" to "7d", such as "15m"' })
    .optional(),
});
export type DecideApproval = z.output<typeof DecideApproval>;

export const ApprovalQuery = z.strictObject({
  state: z.enum(approvalStates).optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(500).optional(),
});
export type ApprovalQuery = z.output<typeof ApprovalQuery>;

export const ApprovalView = z.object({
  id: z.string(),
  state: z.enum(approvalStates),
  /** The caller that wants to act, as `kind:id`. */
  caller: z.string(),
  verb: z.string(),
  action: z.string(),
  resource: z.string(),
  /** Everything that the act sends. */
  input: z.record(z.string(), z.unknown()),
  policies: z.array(z.string()),
  /** The approver must be in all of these groups. */
  approvers: z.array(z.string()),
  /** The page where a person decides. */
  url: z.string(),
  /** True when the reader of this view may decide now. */
  mayDecide: z.boolean(),
  requestedAt: z.string(),
  expiresAt: z.string(),
  decidedAt: z.string().nullable(),
  decidedBy: z.string().nullable(),
  reason: z.string().nullable(),
  usesLeft: z.number(),
  usedAt: z.string().nullable(),
  /** Id of the audit event of the last act that used the approval. */
  usedBy: z.string().nullable(),
});
export type ApprovalView = z.output<typeof ApprovalView>;
