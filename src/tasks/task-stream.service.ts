import { Injectable } from '@nestjs/common';
import { interruptedStates, terminalStates, type TaskState } from '../protocol/a2a/states.js';
import { TaskFeed, type Inbox } from './lifecycle/task-feed.js';
import { TaskStore } from './storage/task.store.js';
import type { NumberedEvent, StoredTask } from './task.types.js';

/** The state that an event brings its task into; undefined when it changes none. */
export function stateAfter({ body }: Pick<NumberedEvent, 'body'>): TaskState | undefined {
  if ('statusUpdate' in body) return body.statusUpdate.status.state;
  return 'task' in body ? body.task.status.state : undefined;
}

/** A subscription ends with its task (v1.0 section 3.1.6). */
export function isEnd(event: NumberedEvent): boolean {
  const state = stateAfter(event);
  return state !== undefined && terminalStates.has(state);
}

/** A sent message is answered when its task ended or asks its caller; credentials may come without a message (a2a.md 1.8). */
export function isAnswer(event: NumberedEvent): boolean {
  return isEnd(event) || stateAfter(event) === 'TASK_STATE_INPUT_REQUIRED';
}

/** Whoever waits for a task without following it gets it as soon as it needs someone. */
export function isSettled(state: TaskState): boolean {
  return terminalStates.has(state) || interruptedStates.has(state);
}

/** Follows the logs of tasks: from any process, in order, to many readers. */
@Injectable()
export class TaskStreamService {
  constructor(
    private readonly feed: TaskFeed,
    private readonly store: TaskStore,
  ) {}

  open(id: string): Inbox {
    return this.feed.open(id);
  }

  /** The task as it is when it ended or waits for its caller, or when the signal aborts. */
  async settled(task: StoredTask, signal: AbortSignal): Promise<StoredTask> {
    const inbox = this.open(task.id);
    inbox.push(task.seq + 1, []); // there may be more than was seen
    for await (const event of this.follow(task.id, task.seq, inbox, isEnd, signal)) {
      const state = stateAfter(event);
      if (state && isSettled(state)) break;
    }
    return (await this.store.find(task.id)) ?? task;
  }

  /**
   * The events after a number, as they come, up to and with the first that `isLast`, or until the signal aborts. Closes the
   * inbox. What is not in memory is read from the log.
   */
  async *follow(
    id: string,
    after: number,
    inbox: Inbox,
    isLast: (event: NumberedEvent) => boolean,
    signal?: AbortSignal,
  ): AsyncGenerator<NumberedEvent, void> {
    let cursor = after;
    const leave = (): void => inbox.nudge();
    signal?.addEventListener('abort', leave);
    try {
      while (!signal?.aborted) {
        const events = inbox.take(cursor) ?? (await this.store.eventsAfter(id, cursor));
        for (const event of events) {
          cursor = event.seq;
          yield event;
          if (isLast(event)) return;
        }
        if (events.length === 0 && !signal?.aborted) await inbox.wait(cursor);
      }
    } finally {
      signal?.removeEventListener('abort', leave);
      inbox.close();
    }
  }
}
