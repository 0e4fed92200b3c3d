import { Inject, Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { mcpError } from '../../protocol/mcp/errors.js';
import type { ToolResult } from '../../protocol/mcp/tool-result.js';
import { terminalStates } from '../../protocol/a2a/states.js';
import { TaskAgents } from '../../registry/task-agents.js';
import { TaskService } from '../../tasks/task.service.js';
import { TaskSubmitService } from '../../tasks/task-submit.service.js';
import { taskView, type StoredTask } from '../../tasks/task.types.js';
import { adoptedResult, detailOf, handleOf, keptResult, partIn, type CallEnd, type TaskHandle } from './mcp-task.js';
import { taskResult } from './own-agent-tools.js';

/** Reads, answers and cancels tasks for MCP clients with the extension `io.modelcontextprotocol/tasks`. */
@Injectable()
export class McpTasks {
  constructor(
    private readonly tasks: TaskService,
    private readonly submits: TaskSubmitService,
    private readonly agents: TaskAgents,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  /** Returns the handle of the task as which a call continues. */
  async handleFor(ctx: CallContext, taskId: string): Promise<TaskHandle> {
    return handleOf(await this.tasks.visible(ctx, undefined, taskId), this.settings.RIALTO_TASK_RETENTION_DAYS);
  }

  /** Handles `tasks/get`. Throws `task_not_found`, `denied`, `invalid_params`. */
  async get(ctx: CallContext, params: unknown): Promise<JsonObject> {
    const task = await this.tasks.get(ctx, undefined, taskIdOf(params));
    return detailOf(task, this.settings.RIALTO_TASK_RETENTION_DAYS, await this.outcomeOf(task));
  }

  /**
   * Handles `tasks/cancel`; a task that has ended does not change. Throws `task_not_found`, `denied`,
   * `invalid_params`.
   */
  async cancel(ctx: CallContext, params: unknown): Promise<JsonObject> {
    const id = taskIdOf(params);
    const task = await this.tasks.visible(ctx, undefined, id);
    if (terminalStates.has(task.state)) return {};
    await this.tasks.cancel(ctx, undefined, id).catch((error: unknown) => {
      if (RialtoError.from(error).code !== 'task_not_cancelable') throw error; // it ended in the meantime
    });
    return {};
  }

  /**
   * Handles `tasks/update`: sends the answer to the task's current question; ignores other answers. Throws the errors
   * of `get` and of a send.
   */
  async update(ctx: CallContext, params: unknown, responses: unknown): Promise<JsonObject> {
    const task = await this.tasks.visible(ctx, undefined, taskIdOf(params));
    if (!isJsonObject(responses))
      throw new RialtoError('invalid_params', { message: 'inputResponses must be an object' });
    const answer = partIn(task, responses);
    if (answer === 'none') return {};
    if (answer === 'declined') return this.cancel(ctx, params);
    const found = await this.agents.agentOf(task);
    if (!found) throw new RialtoError('not_found', { message: 'the agent of this task was removed' });
    const message = { messageId: newId(), role: 'ROLE_USER' as const, taskId: task.id, parts: [answer] };
    await this.submits.submit(ctx, found.agent, { params: { message }, waits: false });
    return {};
  }

  /**
   * Returns the outcome of the call; undefined while the task continues, and when it was canceled or asks its caller.
   */
  private async outcomeOf(task: StoredTask): Promise<CallEnd | undefined> {
    if (!terminalStates.has(task.state) || task.state === 'TASK_STATE_CANCELED') return undefined;
    try {
      return { result: await this.resultOf(task) };
    } catch (thrown) {
      const { code, message, data } = mcpError(thrown);
      return { error: { code, message, data: data as JsonObject } };
    }
  }

  /** Returns the result that the call would have given. Throws the meaning of a failed adopted task. */
  async resultOf(task: StoredTask): Promise<ToolResult | JsonObject> {
    const found = await this.agents.agentOf(task);
    if (!found?.isAdopted) return taskResult(taskView(task));
    return found.agent.executor.kind === 'mcp-tool' ? keptResult(task) : adoptedResult(task);
  }
}

function taskIdOf(params: unknown): string {
  const id = isJsonObject(params) ? params.taskId : undefined;
  if (typeof id === 'string' && id !== '') return id;
  throw new RialtoError('invalid_params', { message: 'taskId must be the id of a task' });
}
