import { z } from 'zod';

/**
 * Tasks mostly wait for somebody outside: a job shows its attempt to the end, and how many of an org may run at once is
 * decided where they are run.
 */
const waiting = 1_000;

/** More than one slow host, or one org, may hold at once. */
const posting = 128;

/** Work for a worker: imperative, ids only. A job means "look again"; the row decides. One queue per job. */
export const jobs = {
  'task.execute': { queue: 'task-execution', payload: z.object({ taskId: z.uuid() }), concurrency: waiting },
  'webhook.deliver': {
    queue: 'webhook-delivery',
    payload: z.object({ taskId: z.uuid(), configId: z.string() }),
    concurrency: posting,
  },
  'card.refresh': { queue: 'card-refresh', payload: z.object({ agentId: z.uuid() }), concurrency: 4 },
  'sweep.run': { queue: 'sweeps', payload: z.object({ sweeper: z.string() }), concurrency: 2 },
} as const;

export type JobName = keyof typeof jobs;
export type JobPayload<Name extends JobName> = z.infer<(typeof jobs)[Name]['payload']>;
