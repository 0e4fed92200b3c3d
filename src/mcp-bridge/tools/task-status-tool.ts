import { Injectable } from '@nestjs/common';
import { ContinuationService } from '../../continuations/continuation.service.js';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import type { ToolResult } from '../../protocol/mcp/tool-result.js';
import { TaskSendService } from '../../tasks/task-send.service.js';
import { isSettled } from '../../tasks/task-stream.service.js';
import { TaskService } from '../../tasks/task.service.js';
import { McpTasks } from './mcp-tasks.js';
import type { ToolCall } from './tool-call.types.js';

const name = 'task_status';
const waitMs = { usual: 10_000, most: 60_000 };
const listed = JSON.stringify({
  name,
  title: 'Task status',
  description:
    'Asks again for the task of an earlier call, by its taskId. ' +
    'Waits a short time for its end, and returns the result of the call, or states that the task continues.',
  inputSchema: {
    type: 'object',
    properties: {
      taskId: { type: 'string', description: 'The taskId of an earlier result' },
      waitMs: { type: 'integer', minimum: 0, maximum: waitMs.most, description: 'Milliseconds to wait for its end' },
    },
    required: ['taskId'],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true },
});

/** Tool that asks for the task of an earlier call, for clients without the tasks extension. */
@Injectable()
export class TaskStatusTool {
  private readonly offered = new Set<string>();

  constructor(
    private readonly tasks: TaskService,
    private readonly sends: TaskSendService,
    private readonly mcpTasks: McpTasks,
    private readonly continuations: ContinuationService,
  ) {}

  has(called: string): boolean {
    return called === name;
  }

  /** Returns the tool for `tools/list`, only after the org had a task to ask for. */
  async listed({ org }: CallContext): Promise<string[]> {
    return this.offered.has(org.id) || (await this.continuations.hasAny(org.id)) ? [listed] : [];
  }

  /** Starts to list the tool, because a call of this org continued as a task. */
  offer({ org }: CallContext): void {
    this.offered.add(org.id);
  }

  /**
   * Returns the result of the task. Throws `invalid_params`, `task_not_found`, `denied`, and the meaning of a failed
   * task.
   */
  async callTool(ctx: CallContext, { args }: ToolCall): Promise<ToolResult | JsonObject> {
    const { taskId, wait } = readArguments(args);
    const current = await this.tasks.get(ctx, undefined, taskId);
    if (isSettled(current.state)) return this.mcpTasks.resultOf(current);
    const { signal } = ctx;
    const task = await this.sends.settledWithin(current, wait, signal && (() => signal));
    return this.mcpTasks.resultOf(task);
  }
}

function readArguments({ taskId, waitMs: wait = waitMs.usual }: JsonObject): { taskId: string; wait: number } {
  if (typeof taskId !== 'string' || taskId === '')
    throw new RialtoError('invalid_params', { message: 'taskId must be the id of a task' });
  if (!Number.isInteger(wait) || (wait as number) < 0 || (wait as number) > waitMs.most)
    throw new RialtoError('invalid_params', { message: `waitMs must be a whole number up to ${waitMs.most}` });
  return { taskId, wait: wait as number };
}
