import type { JobName } from '../../kernel/jobs.js';
import type { JobHandler } from './handles-job.decorator.js';

/**
 * Compares the job catalogue with the handlers that were found. Throws an error that names the job when a handler is
 * missing or there are two.
 */
export function checkWiring(
  names: readonly JobName[],
  found: readonly { job: JobName; handler: JobHandler<JobName> }[],
): Map<JobName, JobHandler<JobName>> {
  const handlers = new Map<JobName, JobHandler<JobName>>();
  for (const { job, handler } of found) {
    if (handlers.has(job))
      throw new Error(
        `the job '${job}' has two handlers: ${handlers.get(job)!.constructor.name} and ${handler.constructor.name}`,
      );
    handlers.set(job, handler);
  }
  for (const name of names) {
    if (!handlers.has(name))
      throw new Error(`the job '${name}' has no handler: add a provider with @HandlesJob('${name}')`);
  }
  return handlers;
}
