import { Refusal, TestUpstream } from './upstream.js';

/** The state of a task of the scripted server at one poll. */
export type Look = Record<string, unknown> & { status: string };

export const extension = 'io.modelcontextprotocol/tasks';
export const takingTasks = {
  _meta: { 'io.modelcontextprotocol/clientCapabilities': { extensions: { [extension]: {} } } },
};

/** The final result of the tool. It includes content that no version of the protocol defines. */
export const result = {
  content: [
    { type: 'text', text: 'printed', annotations: { audience: ['user'] } },
    { type: 'later', kind: 7 },
  ],
  structuredContent: { pages: 3 },
  _meta: { 'example/of': 'it' },
};
export const done: Look = { status: 'completed', result };

/**
 * An MCP server of the 2026-07-28 revision that answers each call of its tool `work` with a task. The polls of the task
 * are scripted.
 */
export class TaskUpstream {
  /** Returns the state of a task at a poll, by the number of the poll, from 1. */
  look: (number: number) => Look = () => ({ status: 'working' });
  pollIntervalMs: number | undefined = 20;
  /** Params of the received `tasks/update` requests; `cancels` has the task ids of `tasks/cancel`. */
  readonly updates: any[] = [];
  readonly cancels: string[] = [];
  readonly looks = new Map<string, number>();
  private count = 0;

  private constructor(readonly mcp: TestUpstream) {}

  static async start(): Promise<TaskUpstream> {
    const mcp = await TestUpstream.start('modern');
    const one = new TaskUpstream(mcp);
    mcp.capabilities.extensions = { [extension]: {} };
    mcp.add('work', () => one.begin());
    mcp.methods.set('tasks/get', ({ taskId }) => one.get(taskId));
    mcp.methods.set('tasks/update', ({ taskId, inputResponses }) => {
      one.updates.push({ taskId, inputResponses });
      return {};
    });
    mcp.methods.set('tasks/cancel', ({ taskId }) => {
      one.cancels.push(taskId);
      return {};
    });
    return one;
  }

  /** The task of the newest call, and the number of its polls. */
  get newest(): { taskId: string; looks: number } {
    const taskId = `far-${this.count}`;
    return { taskId, looks: this.looks.get(taskId) ?? 0 };
  }

  /** Calls of the tool `work`. */
  get calls() {
    return this.mcp.calls.filter(({ name }) => name === 'work');
  }

  get url(): string {
    return this.mcp.url;
  }

  close(): Promise<void> {
    return this.mcp.close();
  }

  private begin(): object {
    const taskId = `far-${(this.count += 1)}`;
    this.looks.set(taskId, 0);
    return { resultType: 'task', ...this.facts(taskId), status: 'working' };
  }

  private get(taskId: string): object {
    const looks = this.looks.get(taskId);
    if (looks === undefined) throw new Refusal(-32_602, 'Failed to retrieve task: Task not found');
    this.looks.set(taskId, looks + 1);
    return { ...this.facts(taskId), ...this.look(looks + 1) };
  }

  private facts(taskId: string): object {
    const at = '2026-08-01T00:00:00Z';
    return { taskId, createdAt: at, lastUpdatedAt: at, ttlMs: 60_000, pollIntervalMs: this.pollIntervalMs };
  }
}
