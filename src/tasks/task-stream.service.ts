import { Injectable } from '@nestjs/common';
import { interruptedStates, terminalStates, type TaskState } from '../protocol/a2a/states.js';
import { TaskFeed, type Inbox } from './lifecycle/task-feed.js';
import { TaskStore } from './storage/task.store.js';
import type { NumberedEvent, StoredTask } from './task.types.js';

/** The task state after an event; undefined when the event does not change the state. */
export function stateAfter({ body }: Pick<NumberedEvent, 'body'>): TaskState | undefined {
  if ('statusUpdate' in body) return body.statusUpdate.status.state;
  return 'task' in body ? body.task.status.state : undefined;
}

/** True when the event ends its task, and with it a subscription (v1.0 section 3.1.6). */
export function isEnd(event: NumberedEvent): boolean {
  const state = stateAfter(event);
  return state !== undefined && terminalStates.has(state);
}

/**
 * True when the event answers a sent message: the task ended or asks its caller. `TASK_STATE_AUTH_REQUIRED` is no
 * answer, because credentials may arrive without a message.
 */
export function isAnswer(event: NumberedEvent): boolean {
  return isEnd(event) || stateAfter(event) === 'TASK_STATE_INPUT_REQUIRED';
}

/** True when a caller that waits without a stream gets the task: it ended, or it needs input or credentials. */
export function isSettled(state: TaskState): boolean {
  return terminalStates.has(state) || interruptedStates.has(state);
}

/** Follows the logs of tasks: from any process, in order, for many readers. */
@Injectable()
export class TaskStreamService {
  constructor(
    private readonly feed: TaskFeed,
    private readonly store: TaskStore,
  ) {}

  openInbox(id: string): Inbox {
    return this.feed.openInbox(id);
  }

  /** Waits until the task ends, waits for its caller, or the signal aborts; returns the current task. */
  async waitUntilSettled(task: StoredTask, signal: AbortSignal): Promise<StoredTask> {
    const inbox = this.openInbox(task.id);
    inbox.addEvents(task.seq + 1, []); // events may have been appended since `task` was read
    for await (const event of this.followEvents(task.id, task.seq, inbox, isEnd, signal)) {
      const state = stateAfter(event);
      if (state && isSettled(state)) break;
    }
    return (await this.store.find(task.id)) ?? task;
  }

  /**
   * Yields the events with numbers above `after` as they arrive, up to and including the first event for which `isLast`
   * is true, or until the signal aborts. Closes the inbox. Reads events that are not in memory from the log.
   */
  async *followEvents(
    id: string,
    after: number,
    inbox: Inbox,
    isLast: (event: NumberedEvent) => boolean,
    signal?: AbortSignal,
  ): AsyncGenerator<NumberedEvent, void> {
    let cursor = after;
    const onAbort = (): void => inbox.nudge();
    signal?.addEventListener('abort', onAbort);
    try {
      while (!signal?.aborted) {
        const events = inbox.takeEvents(cursor) ?? (await this.store.eventsAfter(id, cursor));
        for (const event of events) {
          cursor = event.seq;
          yield event;
          if (isLast(event)) return;
        }
        if (events.length === 0 && !signal?.aborted) await inbox.wait(cursor);
      }
    } finally {
      signal?.removeEventListener('abort', onAbort);
      inbox.close();
    }
  }
}
