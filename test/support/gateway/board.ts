import { eventually } from './eventually.js';
import type { Answer, Caller } from './caller.js';

/** A client of the API of Bull Board, as the browser of an operator uses it. */
export class Board {
  constructor(private readonly gateway: Caller) {}

  /** Returns the jobs of a queue in one state, newest first. */
  async jobs(queue: string, status: 'failed' | 'completed' | 'delayed' | 'active' | 'latest'): Promise<any[]> {
    const query = `activeQueue=${queue}&status=${status}&page=1&jobsPerPage=200`;
    const { body } = await this.gateway.call('GET', `/admin/queues/api/queues?${query}`);
    return body.queues.find(({ name }: any) => name === queue).jobs;
  }

  /** Waits until a task has at least `count` jobs, and returns them. */
  async jobsOf(queue: string, status: Parameters<Board['jobs']>[1], taskId: string, count = 1): Promise<any[]> {
    return eventually(
      async () => (await this.jobs(queue, status)).filter(({ data }) => data.taskId === taskId),
      ({ length }) => length >= count,
    );
  }

  async isPaused(queue: string): Promise<boolean> {
    const { body } = await this.gateway.call('GET', '/admin/queues/api/queues');
    return body.queues.find(({ name }: any) => name === queue).isPaused;
  }

  logs(queue: string, id: string): Promise<string[]> {
    return this.gateway.call('GET', `/admin/queues/api/queues/${queue}/${id}/logs`).then(({ body }) => body);
  }

  /** Retries, promotes or removes one job. */
  press(queue: string, id: string, act: 'retry' | 'promote' | 'clean'): Promise<Answer> {
    return this.gateway.call('PUT', `/admin/queues/api/queues/${queue}/${id}/${act}`);
  }

  /** Pauses or resumes a whole queue. */
  turn(queue: string, act: 'pause' | 'resume'): Promise<Answer> {
    return this.gateway.call('PUT', `/admin/queues/api/queues/${queue}/${act}`);
  }
}
