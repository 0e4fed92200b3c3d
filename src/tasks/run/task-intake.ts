import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { callerOf, type CallContext } from '../../kernel/call-context.js';
import { newId, type TaskId } from '../../kernel/ids.js';
import type { JsonObject } from '../../kernel/json.js';
import type { Act } from '../../kernel/verb-bus.js';
import type { Message } from '../../protocol/a2a/model.js';
import { Ledger } from '../../platform/bus/ledger.js';
import { dispatchMember } from '../../registry/own-routing.js';
import type { PublishedAgent } from '../../registry/published.types.js';
import { TaskChanges } from '../lifecycle/task-changes.js';
import { TaskFeed, type Inbox } from '../lifecycle/task-feed.js';
import { openTask, resumeTask } from '../lifecycle/task.lifecycle.js';
import type { IdempotencyKey } from '../storage/task-writer.js';
import type { Submission } from '../task-submit.service.js';
import { messageFacts, originOf } from '../task-verbs.js';
import { trustTierMember, type StoredTask } from '../task.types.js';
import { TaskQuota } from './task-quota.js';
import { TaskStarter, type Started } from './task-starter.js';

/** A started task, and the inbox that its sender reads. */
export interface TakenIn extends Started {
  /** Events from this message on; its consumer closes it. Absent for a run that has a `reply`. */
  readonly inbox?: Inbox;
}

/** Turns accepted messages into tasks: new ones, and ones that continue. */
@Injectable()
export class TaskIntake {
  constructor(
    private readonly ledger: Ledger,
    private readonly changes: TaskChanges,
    private readonly feed: TaskFeed,
    private readonly starter: TaskStarter,
    private readonly quota: TaskQuota,
  ) {}

  /**
   * Creates a task. Returns undefined when a concurrent request took the key first. Throws `rate_limited`,
   * `unavailable`.
   */
  createTask(
    act: Act,
    ctx: CallContext,
    agent: PublishedAgent,
    { params, waits, follows, rows, facts }: Submission,
    key: IdempotencyKey | undefined,
  ): Promise<TakenIn | undefined> {
    return this.quota.admitTask(ctx, async () => {
      const id = newId<TaskId>();
      const metadata = metadataOf(params.metadata, facts);
      const seed = {
        id,
        orgId: ctx.org.id,
        agentId: agent.id,
        agentName: agent.name,
        contextId: params.message.contextId ?? newContextId(ctx, agent),
        principal: ctx.principal,
        depth: ctx.depth,
        trustTier: messageFacts(ctx, params.message).trustTier,
        ...originOf(ctx),
        ...(metadata && { metadata }),
      };
      const moved = openTask(seed, messageOf(params), this.changes.step());
      const record = this.ledger.completion(act);
      const first = { record: record.rows, rows: rows?.(id), key };
      const taken = await this.withInbox(id, follows, () =>
        this.starter.storeAndStart(ctx, agent, { moved, first, waits }),
      );
      // The record is committed even when a concurrent request had taken the key, but a reply commits nothing.
      if (!taken?.run?.reply) record.done();
      return taken;
    });
  }

  /**
   * Adds the caller's next message to its task that waits for it. Returns undefined when the task changed meanwhile.
   * Throws `unsupported_operation`, `rate_limited`, `unavailable`.
   */
  async resumeTask(
    act: Act,
    ctx: CallContext,
    agent: PublishedAgent,
    from: StoredTask,
    { params, waits, follows, rows }: Submission,
    key: IdempotencyKey | undefined,
  ): Promise<TakenIn | undefined> {
    const { trustTier } = messageFacts(ctx, params.message);
    const moved = resumeTask(from, messageOf(params), this.changes.step(), trustTier);
    return this.quota.admitTask(ctx, async () => {
      const record = this.ledger.completion(act);
      const first = { record: record.rows, key, rows: rows?.(from.id) };
      const taken = await this.withInbox(from.id, follows, () =>
        this.starter.storeAndStart(ctx, agent, { moved, first, from, waits }),
      );
      if (taken) record.done();
      return taken;
    });
  }

  /** Opens an inbox before the first event, and closes it when there is no task to follow. */
  private async withInbox(
    id: TaskId,
    follows: boolean | undefined,
    start: () => Promise<Started | undefined>,
  ): Promise<TakenIn | undefined> {
    const inbox = follows ? this.feed.openInbox(id) : undefined;
    let started: Started | undefined;
    try {
      started = await start();
      return started && { ...started, inbox };
    } finally {
      if (!started || started.run?.reply) inbox?.close();
    }
  }
}

/** Merges the caller's metadata with the gateway's. A caller cannot set the members of the gateway. */
function metadataOf(metadata: JsonObject | undefined, facts: JsonObject | undefined): JsonObject | undefined {
  return facts || isForged(metadata) ? { ...withoutOwnMembers(metadata), ...facts } : metadata;
}

/** Returns the message as its agent and its readers get it: without members that only the gateway sets. */
function messageOf({ message }: Submission['params']): Message {
  return isForged(message.metadata) ? { ...message, metadata: withoutOwnMembers(message.metadata) } : message;
}

function isForged(metadata: JsonObject | undefined): boolean {
  return [dispatchMember, trustTierMember].some((name) => metadata && Object.hasOwn(metadata, name));
}

function withoutOwnMembers(metadata: JsonObject = {}): JsonObject {
  const { [dispatchMember]: _1, [trustTierMember]: _2, ...rest } = metadata;
  return rest;
}

/**
 * The context of a message without one. An agent with a lasting history has one fixed context for each caller; other
 * agents get a new one for each task (RY-38, RY-39).
 */
function newContextId({ org, principal }: CallContext, { history, id }: PublishedAgent): string {
  return history === 'agent' ? hash('sha256', `${org.id}\n${id}\n${callerOf(principal)}`, 'hex').slice(0, 32) : newId();
}
