import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { Role, TaskState, type Message, type Part, type TaskStatus } from '@a2a-js/sdk';
import { AgentEvent, type AgentExecutor, type ExecutionEventBus, type RequestContext } from '@a2a-js/sdk/server';

const blank = { metadata: undefined, filename: '' };

export function textPart(value: string): Part {
  return { content: { $case: 'text', value }, mediaType: 'text/plain', ...blank };
}

export function dataPart(value: unknown): Part {
  return { content: { $case: 'data', value }, mediaType: 'application/json', ...blank };
}

interface Asked {
  skillId: string | null;
  data?: Record<string, unknown>;
  text?: string;
}

/**
 * The executor of the SDK agents. `metadata.skillId` selects the skill: `echo` (default) answers data as `{ received,
 * skillId }` and text as `echo: …`; `slow` works for `data.ms` milliseconds (endlessly without it) or until canceled;
 * `ask` asks back once.
 */
export class SdkExecutor implements AgentExecutor {
  readonly received: Message[] = [];
  readonly canceled: string[] = [];
  private readonly running = new Map<string, AbortController>();

  async execute(context: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const { userMessage } = context;
    this.received.push(userMessage);
    const asked = read(userMessage);
    publishTask(context, bus);
    if (asked.skillId === 'ask' && !context.task) {
      return publishStatus(context, bus, TaskState.TASK_STATE_INPUT_REQUIRED, 'Which one?');
    }
    if (asked.skillId === 'slow' && !(await this.work(context.taskId, asked.data?.ms))) return;
    publishArtifact(context, bus, answerTo(asked));
    publishStatus(context, bus, TaskState.TASK_STATE_COMPLETED);
    bus.finished();
  }

  cancelTask(taskId: string, bus: ExecutionEventBus): Promise<void> {
    this.canceled.push(taskId);
    this.running.get(taskId)?.abort();
    publishStatus({ taskId, contextId: '' }, bus, TaskState.TASK_STATE_CANCELED);
    bus.finished();
    return Promise.resolve();
  }

  /** Ends every slow skill, so that none continues after its test. */
  stopAll(): void {
    this.running.forEach((controller) => controller.abort());
  }

  /** Resolves with true when the time has passed, with false when the task was canceled. */
  private async work(taskId: string, ms: unknown): Promise<boolean> {
    const controller = new AbortController();
    this.running.set(taskId, controller);
    const options = { signal: controller.signal };
    const ended = await wait(typeof ms === 'number' ? ms : 2 ** 31 - 1, true, options).catch(() => false);
    this.running.delete(taskId);
    return ended;
  }
}

function read(message: Message): Asked {
  const asked: Asked = { skillId: (message.metadata?.skillId as string | undefined) ?? null };
  for (const { content } of message.parts) {
    if (content?.$case === 'data') asked.data = content.value as Record<string, unknown>;
    if (content?.$case === 'text') asked.text = content.value;
  }
  return asked;
}

function answerTo({ data, text, skillId }: Asked): Part {
  return data === undefined ? textPart(`echo: ${text ?? ''}`) : dataPart({ received: data, skillId });
}

type Where = Pick<RequestContext, 'taskId' | 'contextId'>;

function status(where: Where, state: TaskState, text?: string): TaskStatus {
  const message = text === undefined ? undefined : agentMessage(where, text);
  return { state, message, timestamp: new Date().toISOString() };
}

function publishTask(context: RequestContext, bus: ExecutionEventBus): void {
  const { taskId: id, contextId, task, userMessage } = context;
  const working = status(context, TaskState.TASK_STATE_WORKING);
  const history = task?.history ?? [userMessage];
  bus.publish(AgentEvent.task({ id, contextId, status: working, artifacts: [], history, metadata: {} }));
}

function publishStatus(where: Where, bus: ExecutionEventBus, state: TaskState, text?: string): void {
  const { taskId, contextId } = where;
  bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(where, state, text), metadata: {} }));
}

function publishArtifact({ taskId, contextId }: Where, bus: ExecutionEventBus, part: Part): void {
  const names = { name: 'answer', description: '', metadata: {}, extensions: [] };
  const artifact = { artifactId: 'answer', parts: [part], ...names };
  const ends = { append: false, lastChunk: true, metadata: {} };
  bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, ...ends }));
}

function agentMessage({ taskId, contextId }: Where, text: string): Message {
  const rest = { metadata: {}, extensions: [], referenceTaskIds: [] };
  return { messageId: randomUUID(), taskId, contextId, role: Role.ROLE_AGENT, parts: [textPart(text)], ...rest };
}
