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
import { resultOf } from './own-agent-tools.js';

/** Tasks for MCP clients: asked for, answered and canceled by the extension `io.modelcontextprotocol/tasks`. */
@Injectable()
export class McpTasks {
  constructor(
    private readonly tasks: TaskService,
    private readonly submits: TaskSubmitService,
    private readonly agents: TaskAgents,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  /** A task that a call goes on as. */
  async handle(ctx: CallContext, taskId: string): Promise<TaskHandle> {
    return handleOf(await this.tasks.visible(ctx, undefined, taskId), this.settings.RIALTO_TASK_RETENTION_DAYS);
  }

  /** `tasks/get`. Throws `task_not_found`, `denied`, `invalid_params`. */
  async get(ctx: CallContext, params: unknown): Promise<JsonObject> {
    const task = await this.tasks.get(ctx, undefined, taskIdOf(params));
    return detailOf(task, this.settings.RIALTO_TASK_RETENTION_DAYS, await this.outcomeOf(task));
  }

  /** `tasks/cancel`: a task that has ended stays as it is. Throws `task_not_found`, `denied`, `invalid_params`. */
  async cancel(ctx: CallContext, params: unknown): Promise<JsonObject> {
    const id = taskIdOf(params);
    const task = await this.tasks.visible(ctx, undefined, id);
    if (terminalStates.has(task.state)) return {};
    await this.tasks.cancel(ctx, undefined, id).catch((error: unknown) => {
      if (RialtoError.from(error).code !== 'task_not_cancelable') throw error; // it ended meanwhile
    });
    return {};
  }

  /** `tasks/update`: the answer to the question that the task waits with; others are read past. Throws as `get` and a send do. */
  async update(ctx: CallContext, params: unknown, responses: unknown): Promise<JsonObject> {
    const task = await this.tasks.visible(ctx, undefined, taskIdOf(params));
    if (!isJsonObject(responses)) throw new RialtoError('invalid_params', { message: 'inputResponses is an object' });
    const answer = partIn(task, responses);
    if (answer === 'none') return {};
    if (answer === 'declined') return this.cancel(ctx, params);
    const found = await this.agents.of(task);
    if (!found) throw new RialtoError('not_found', { message: 'the agent of this task is gone' });
    const message = { messageId: newId(), role: 'ROLE_USER' as const, taskId: task.id, parts: [answer] };
    await this.submits.submit(ctx, found.agent, { params: { message }, waits: false });
    return {};
  }

  /** What the call gave; undefined while it goes on, for a canceled one, and for one that asks. */
  private async outcomeOf(task: StoredTask): Promise<CallEnd | undefined> {
    if (!terminalStates.has(task.state) || task.state === 'TASK_STATE_CANCELED') return undefined;
    try {
      return { result: await this.resultOf(task) };
    } catch (thrown) {
      const { code, message, data } = mcpError(thrown);
      return { error: { code, message, data: data as JsonObject } };
    }
  }

  /** As the call would have given it. Throws what the failure of an adopted task means. */
  async resultOf(task: StoredTask): Promise<ToolResult | JsonObject> {
    const found = await this.agents.of(task);
    if (!found?.isAdopted) return resultOf(taskView(task));
    return found.agent.executor.kind === 'mcp-tool' ? keptResult(task) : adoptedResult(task);
  }
}

function taskIdOf(params: unknown): string {
  const id = isJsonObject(params) ? params.taskId : undefined;
  if (typeof id === 'string' && id !== '') return id;
  throw new RialtoError('invalid_params', { message: 'taskId is the id of a task' });
}
