import { z } from 'zod';
import { Moment } from '../platform/http/params.js';
import { healths } from './agents/health.js';

/** State of a dispatch. `pending`: it holds a place with an agent and was not sent yet. */
export const DispatchStatus = z.enum(['pending', 'running', 'completed', 'failed']);
export type DispatchStatus = z.output<typeof DispatchStatus>;

/** `explicit`: the caller named the agent; `transparent`: the gateway chose it (RE-64). */
const DispatchKind = z.enum(['explicit', 'transparent']);

export const DispatchQuery = z.strictObject({
  agentId: z.string().max(200).optional(),
  status: DispatchStatus.optional(),
  kind: DispatchKind.optional(),
  from: Moment.optional(),
  to: Moment.optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(500).optional(),
});
export type DispatchQuery = z.output<typeof DispatchQuery>;

/**
 * One call to a registered agent (RE-63). `input` and `output` have no secrets and are cut when long; null for a tool
 * call.
 */
export const DispatchView = z.object({
  dispatchId: z.string(),
  agentId: z.string(),
  agentName: z.string(),
  skillId: z.string().nullable(),
  /** Id of the task at the remote agent. */
  taskId: z.string().nullable(),
  status: DispatchStatus,
  dispatchType: DispatchKind,
  workType: z.string(),
  caller: z.string(),
  input: z.unknown(),
  output: z.unknown(),
  errorCode: z.string().nullable(),
  dispatchedAt: z.iso.datetime(),
  completedAt: z.iso.datetime().nullable(),
  latencyMs: z.number().nullable(),
  /** Cost for each task that the card states; set when the call completed. */
  costTokens: z.number().nullable(),
});
export type DispatchView = z.output<typeof DispatchView>;

/**
 * A registered agent that routing considered for some work: all numbers of the decision, or the reason for its
 * exclusion.
 */
export const CandidateView = z.object({
  agent: z.object({ id: z.string(), slug: z.string(), name: z.string() }),
  health: z.enum(healths),
  active: z.number(),
  successes: z.number(),
  failures: z.number(),
  costPerTask: z.number().nullable(),
  /** The skill that routing would call. */
  skillId: z.string().nullable(),
  fit: z.number().nullable(),
  factors: z.object({ health: z.number(), load: z.number(), cost: z.number() }).nullable(),
  /** Success rate, drawn at random from the posterior of its calls. */
  sampled: z.number().nullable(),
  /** Product of all numbers. The agent with the highest score is chosen. */
  score: z.number().nullable(),
  excluded: z.string().nullable(),
});
export type CandidateView = z.output<typeof CandidateView>;
