import { Injectable } from '@nestjs/common';
import { callerOf, type CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { isUuid, type AgentId, type TaskId } from '../kernel/ids.js';
import type { Message } from '../protocol/a2a/model.js';
import type { PublishedAgent } from '../registry/published.types.js';
import { IdempotencyStore } from './storage/idempotency.store.js';
import { TaskStore } from './storage/task.store.js';
import type { IdempotencyKey } from './storage/task-writer.js';
import type { Accepted } from './task-submit.service.js';
import { maySee } from './task-verbs.js';
import { noSuchTask, type StoredTask } from './task.types.js';

/** Finds the results of the earlier messages of a caller: by their keys, their contexts and their tasks. */
@Injectable()
export class EarlierMessages {
  constructor(
    private readonly keys: IdempotencyStore,
    private readonly tasks: TaskStore,
  ) {}

  /** The agent that accepted an earlier message of this caller with this key. */
  agentOfKey({ org, principal }: CallContext, key: string): Promise<AgentId | undefined> {
    return this.keys.findAgent(org.id, callerOf(principal), key);
  }

  /** The agent of this caller's newest task in a context. */
  agentOfContext({ org, principal }: CallContext, contextId: string | undefined): Promise<AgentId | undefined> {
    if (contextId === undefined) return Promise.resolve(undefined);
    return this.tasks.agentOfContext(org.id, callerOf(principal), contextId);
  }

  /**
   * The result of an earlier message with this key. Throws `idempotency_key_reused` when that message was different.
   */
  async resultOfKey(ctx: CallContext, agent: PublishedAgent, key: IdempotencyKey): Promise<Accepted | undefined> {
    const found = await this.keys.findKey(keyScope(ctx, agent), key.key);
    if (!found) return undefined;
    if (found.payloadHash !== key.payloadHash)
      throw new RialtoError('idempotency_key_reused', { message: 'this key was used with another message' });
    if (found.answer) return { reply: found.answer };
    const task = await this.tasks.find(found.taskId);
    return task && { task, isNew: false };
  }

  /** Stores a reply under its key. Returns false when the key was taken meanwhile. @param id an id that no task has. */
  keepReply(
    ctx: CallContext,
    agent: PublishedAgent,
    key: IdempotencyKey,
    id: TaskId,
    reply: Message,
  ): Promise<boolean> {
    return this.keys.keepAnswer(keyScope(ctx, agent), key, id, reply);
  }

  /** The caller's task that a message continues. Throws `task_not_found`, and `invalid_params` for another context. */
  async taskToContinue(
    ctx: CallContext,
    agent: PublishedAgent,
    id: string,
    contextId: string | undefined,
  ): Promise<StoredTask> {
    const task = await this.findVisible(ctx, id);
    if (task?.agentId !== agent.id) throw noSuchTask(id);
    if (contextId === undefined || contextId === task.contextId) return task;
    const violations = [{ field: 'message.contextId', description: 'is not the context of the task' }];
    throw new RialtoError('invalid_params', { message: 'contextId is not the context of the task', violations });
  }

  /** Throws `task_not_found` unless every referenced task exists and belongs to the caller (abuse case 11). */
  async requireTasks(ctx: CallContext, ids: readonly string[]): Promise<void> {
    const tasks = await Promise.all(ids.map((id) => this.findVisible(ctx, id)));
    const missing = ids.find((_, index) => !tasks[index]);
    if (missing !== undefined) throw noSuchTask(missing);
  }

  private async findVisible(ctx: CallContext, id: string): Promise<StoredTask | undefined> {
    const task = isUuid(id) ? await this.tasks.find(id) : undefined;
    return task && maySee(ctx, task) ? task : undefined;
  }
}

function keyScope({ org, principal }: CallContext, agent: PublishedAgent) {
  return { org: org.id, agent: agent.id, owner: callerOf(principal) };
}
