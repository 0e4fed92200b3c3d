import { randomUUID } from 'node:crypto';
import { Role, TaskState, type Message, type Part, type Task } from '@a2a-js/sdk';
import { AgentEvent, type AgentExecutor, type ExecutionEventBus, type RequestContext } from '@a2a-js/sdk/server';

type Args = Record<string, unknown>;
/** Computes a skill's answer from its arguments; throws an Error with a message that names the wrong argument. */
export type Skill = (args: Args) => Record<string, unknown>;

/**
 * Runs skills by name: `metadata.skillId` names the skill, the first one is the default. The arguments are the data
 * part of the message; without one they are its text, as JSON or as the single argument `textArgument`.
 */
export class SkillExecutor implements AgentExecutor {
  constructor(
    private readonly skills: Record<string, Skill>,
    private readonly textArgument: string,
  ) {}

  /** Publishes one ended task: completed with one data artifact, or failed with the reason. */
  execute(context: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const task = this.answer(context);
    bus.publish(AgentEvent.task(task));
    bus.finished();
    return Promise.resolve();
  }

  /** Does nothing: every skill ends before its caller could cancel it. */
  cancelTask(): Promise<void> {
    return Promise.resolve();
  }

  private answer(context: RequestContext): Task {
    const { userMessage } = context;
    try {
      const name = skillIdOf(context) ?? Object.keys(this.skills)[0]!;
      const skill = this.skills[name];
      if (!skill) throw new Error(`unknown skill ${name}`);
      const part = dataPart(skill(this.argumentsOf(userMessage)));
      const artifact = { artifactId: 'result', name, description: '', parts: [part], metadata: {}, extensions: [] };
      return taskOf(context, TaskState.TASK_STATE_COMPLETED, { artifacts: [artifact] });
    } catch (error) {
      return taskOf(context, TaskState.TASK_STATE_FAILED, {
        reason: error instanceof Error ? error.message : 'failed',
      });
    }
  }

  private argumentsOf(message: Message): Args {
    const contents = message.parts.map(({ content }) => content);
    const data: unknown = contents.find((content) => content?.$case === 'data')?.value;
    if (typeof data === 'object' && data !== null) return data as Args;
    const text = contents.find((content) => content?.$case === 'text')?.value;
    return typeof text === 'string' ? (objectIn(text) ?? { [this.textArgument]: text.trim() }) : {};
  }
}

function objectIn(text: string): Args | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Args) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the text argument `name`; throws when it is missing or empty. */
export function requiredText(args: Args, name: string): string {
  const value = args[name];
  if (typeof value !== 'string' || value === '') throw new Error(`${name} is required`);
  return value;
}

/** Returns a number that depends only on the text, so that the demo needs no random values and no network. */
export function seedOf(text: string): number {
  return [...text].reduce((seed, letter) => (seed * 31 + letter.codePointAt(0)!) % 2_147_483_647, 7);
}

function skillIdOf({ userMessage, request }: RequestContext): string | undefined {
  const named: unknown = userMessage.metadata?.skillId ?? request.metadata?.skillId;
  return typeof named === 'string' ? named : undefined;
}

function dataPart(value: Record<string, unknown>): Part {
  return { content: { $case: 'data', value }, metadata: undefined, filename: '', mediaType: 'application/json' };
}

function taskOf(
  { taskId, contextId, userMessage }: RequestContext,
  state: TaskState,
  result: { artifacts?: Task['artifacts']; reason?: string },
): Task {
  return {
    id: taskId,
    contextId,
    status: {
      state,
      message: result.reason === undefined ? undefined : agentMessage(taskId, contextId, result.reason),
      timestamp: new Date().toISOString(),
    },
    artifacts: result.artifacts ?? [],
    history: [userMessage],
    metadata: {},
  };
}

function agentMessage(taskId: string, contextId: string, text: string): Message {
  return {
    messageId: randomUUID(),
    taskId,
    contextId,
    role: Role.ROLE_AGENT,
    parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: 'text/plain' }],
    metadata: {},
    extensions: [],
    referenceTaskIds: [],
  };
}
