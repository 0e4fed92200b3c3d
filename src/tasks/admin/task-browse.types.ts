import { z } from 'zod';

const words = [
  'submitted',
  'working',
  'input-required',
  'auth-required',
  'completed',
  'failed',
  'canceled',
  'rejected',
] as const;

export const TaskQuery = z.strictObject({
  agent: z.string().max(200).optional(),
  state: z.enum(words).optional(),
  contextId: z.string().max(256).optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(500).optional(),
});
export type TaskQuery = z.output<typeof TaskQuery>;

/** A task in the list of an org, without its messages and artifacts. */
export const TaskSummary = z.object({
  id: z.string(),
  agent: z.string(),
  contextId: z.string(),
  state: z.enum(words),
  owner: z.object({ kind: z.string(), id: z.string() }),
  /** The lowest trust tier of its messages: 0 for cleartext (RI-07). */
  trustTier: z.number(),
  /** Sequence number of the last event. */
  events: z.number(),
  /** Time of the last change of state, ISO 8601. */
  statusAt: z.string(),
});
export type TaskSummary = z.output<typeof TaskSummary>;

/** One task in full: `task` is the Task of A2A v1.0, `log` has its events in order. */
export const TaskDetail = TaskSummary.extend({
  task: z.unknown(),
  log: z.array(z.object({ seq: z.number(), event: z.unknown() })),
});
export type TaskDetail = z.output<typeof TaskDetail>;
