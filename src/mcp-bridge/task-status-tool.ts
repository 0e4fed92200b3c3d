import { Injectable } from '@nestjs/common';
import { ContinuationService } from '../continuations/continuation.service.js';
import type { CallContext } from '../kernel/call-context.js';
import { errorCodes, RialtoError, type ErrorCode } from '../kernel/errors.js';
import type { JsonObject } from '../kernel/json.js';
import { decodeBridgeReply, toolOutput } from '../protocol/a2a/bridge-call.js';
import { dialects } from '../protocol/a2a/dialect.js';
import { failedStates, terminalStates, wordOf } from '../protocol/a2a/states.js';
import { toolResult, type ToolResult } from '../protocol/mcp/tool-result.js';
import { TaskAgents } from '../registry/task-agents.service.js';
import { TaskSendService } from '../tasks/task-send.service.js';
import { TaskService } from '../tasks/task.service.js';
import { taskView, type StoredTask } from '../tasks/task.types.js';
import { resultOf } from './own-agent-tools.js';
import type { ToolCall } from './tools.service.js';

const name = 'task_status';
const waitMs = { usual: 10_000, most: 60_000 };
const listed = JSON.stringify({
  name,
  title: 'Task status',
  description:
    'Asks again for a task that an earlier call named by its taskId. Waits a little for its end; gives its result as the call would have, or says that it goes on.',
  inputSchema: {
    type: 'object',
    properties: {
      taskId: { type: 'string', description: 'Of an earlier result' },
      waitMs: { type: 'integer', minimum: 0, maximum: waitMs.most, description: 'How long to wait for its end' },
    },
    required: ['taskId'],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true },
});

/** Asks again for what a call left under way, for clients without the tasks extension. */
@Injectable()
export class TaskStatusTool {
  constructor(
    private readonly tasks: TaskService,
    private readonly sends: TaskSendService,
    private readonly agents: TaskAgents,
    private readonly continuations: ContinuationService,
  ) {}

  has(called: string): boolean {
    return called === name;
  }

  /** Listed once there is something to ask for. */
  async listed({ org }: CallContext, hasOwnAgents: boolean): Promise<string[]> {
    return hasOwnAgents || (await this.continuations.hasAny(org.id)) ? [listed] : [];
  }

  /** Throws `invalid_params`, `task_not_found`, `denied`, and what the failure of the task means. */
  async call(ctx: CallContext, { args }: ToolCall): Promise<ToolResult> {
    const { taskId, wait } = readArguments(args);
    const seen = await this.tasks.get(ctx, undefined, taskId);
    const { signal } = ctx;
    const task = await this.sends.settledWithin(seen, wait, signal && (() => signal));
    const isAdopted = (await this.agents.of(task))?.isAdopted ?? false;
    return isAdopted ? adoptedResult(task) : resultOf(taskView(task));
  }
}

function readArguments({ taskId, waitMs: wait = waitMs.usual }: JsonObject): { taskId: string; wait: number } {
  if (typeof taskId !== 'string' || taskId === '')
    throw new RialtoError('invalid_params', { message: 'taskId is the id of a task' });
  if (!Number.isInteger(wait) || (wait as number) < 0 || (wait as number) > waitMs.most)
    throw new RialtoError('invalid_params', { message: `waitMs is a whole number up to ${waitMs.most}` });
  return { taskId, wait: wait as number };
}

/** What the call would have given if its caller had waited. */
function adoptedResult(task: StoredTask): ToolResult {
  const { id: taskId, contextId, state, statusMessage } = task;
  const words = (statusMessage?.parts ?? []).flatMap(({ text }) => text ?? []).join('\n');
  if (failedStates.has(state)) {
    const told = statusMessage?.metadata?.errorCode;
    const code =
      typeof told === 'string' && Object.hasOwn(errorCodes, told) ? (told as ErrorCode) : 'remote_task_failed';
    throw new RialtoError(code, { message: words || undefined, data: { taskId, state: wordOf(state) } });
  }
  if (!terminalStates.has(state))
    return toolResult({ taskId, contextId, state: wordOf(state), message: words || 'The agent still works on it.' });
  const operation = { name: 'GetTask', params: { id: taskId } } as const;
  const result = dialects['1.0'].encodeResult(operation, taskView(task, { historyLength: 0 }));
  const envelope = JSON.stringify({ jsonrpc: '2.0', id: 0, result });
  return toolResult(toolOutput(decodeBridgeReply(envelope, { status: 200, requestId: 0 })));
}
