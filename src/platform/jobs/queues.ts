import type { Queue } from 'bullmq';
import { jobs, type JobName } from '../../kernel/jobs.js';
import type { QueueTrouble } from './queue-trouble.js';

/** The queue of each job of the catalogue. */
export type Queues = ReadonlyMap<JobName, Queue>;
export const QUEUES = Symbol('Queues');

export const jobNames = Object.keys(jobs) as JobName[];

/** Maps the queues, which are in the order of `jobNames`, and reports their lost connections. */
export function namedQueues(trouble: QueueTrouble, ...queues: Queue[]): Queues {
  for (const queue of queues) queue.on('error', (err) => trouble.logTrouble(queue.name, err));
  return new Map(jobNames.map((name, index) => [name, queues[index]!]));
}
