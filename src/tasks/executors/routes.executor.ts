import type { JsonObject } from '../../kernel/json.js';
import type { Message } from '../../protocol/a2a/model.js';
import type { RoutesConfig } from '../../registry/published.types.js';
import type { TaskExecutor, TaskRun } from '../executor.port.js';
import { TaskExecutors } from '../task-executors.js';
import { chooseRoute } from '../run/route-choice.js';

/** Passes each task to one of several executors, chosen by its text. Clients see one agent with one card (RY-46). */
export class RoutesExecutor implements TaskExecutor {
  readonly kind = 'routes';
  readonly pure = false;

  constructor(private readonly executors: TaskExecutors) {}

  execute(run: TaskRun): ReturnType<TaskExecutor['execute']> {
    const { executor, routed } = this.route(run);
    return executor.execute(routed);
  }

  leavesWork(run: Pick<TaskRun, 'agent' | 'task' | 'message'>): boolean {
    const { executor, routed } = this.route(run);
    return executor.leavesWork?.(routed) ?? false;
  }

  async abandon(run: Omit<TaskRun, 'signal' | 'earlier' | 'stored'>): Promise<void> {
    const { executor, routed } = this.route(run);
    await executor.abandon?.(routed);
  }

  /** Returns those of all routes, because the text of a message chooses only when its task begins. */
  async addresses({ ctx, agent }: Pick<TaskRun, 'ctx' | 'agent'>): Promise<JsonObject> {
    const { routes, otherwise } = agent.executor as RoutesConfig;
    const inner = [...routes.map(({ executor }) => executor), otherwise].map(
      async (config) =>
        (await this.executors.ofKind(config.kind).addresses?.({ ctx, agent: { ...agent, executor: config } })) ?? null,
    );
    return { routes: await Promise.all(inner) };
  }

  /** Returns the executor of the chosen route, and the run as that executor expects it. */
  private route<Run extends Pick<TaskRun, 'agent' | 'task' | 'message'>>(run: Run) {
    const { agent, task, message } = run;
    const config = chooseRoute(agent.executor as RoutesConfig, task.history);
    // Skills that messages name are skills of this agent, not of the executor behind it.
    const history = task.history.map(withoutSkill);
    const routed: Run = {
      ...run,
      agent: { ...agent, executor: config },
      task: { ...task, history },
      message: history[task.history.indexOf(message)] ?? withoutSkill(message),
    };
    return { executor: this.executors.ofKind(config.kind), routed };
  }
}

function withoutSkill(message: Message): Message {
  if (message.metadata?.skillId === undefined) return message;
  const { skillId: _, ...metadata } = message.metadata;
  return { ...message, metadata };
}
