import { z } from 'zod';

/**
 * Limit for task jobs. Tasks mostly wait for a remote system: a job stays with its attempt until the end, and the code
 * that runs the job limits the attempts of each org.
 */
const taskConcurrency = 1_000;

/** Limit for webhook jobs: more than one slow host, or one org, can use at the same time. */
const webhookConcurrency = 128;

/** Most tasks, or push configurations, of one job. */
export const mostOfJob = 100;

const pushConfig = z.object({ taskId: z.uuid(), configId: z.string() });

/**
 * Jobs for workers: imperative names, ids only. A job means "read the row again"; the row decides. Each job has its own
 * queue.
 */
export const jobs = {
  'task.execute': {
    queue: 'task-execution',
    payload: z.union([z.object({ taskId: z.uuid() }), z.object({ taskIds: z.array(z.uuid()).min(1).max(mostOfJob) })]),
    concurrency: taskConcurrency,
  },
  'webhook.deliver': {
    queue: 'webhook-delivery',
    payload: z.union([pushConfig, z.object({ configs: z.array(pushConfig).min(1).max(mostOfJob) })]),
    concurrency: webhookConcurrency,
  },
  'card.refresh': { queue: 'card-refresh', payload: z.object({ agentId: z.uuid() }), concurrency: 4 },
  'sweep.run': { queue: 'sweeps', payload: z.object({ sweeper: z.string() }), concurrency: 2 },
} as const;

export type JobName = keyof typeof jobs;
export type JobPayload<Name extends JobName> = z.infer<(typeof jobs)[Name]['payload']>;
