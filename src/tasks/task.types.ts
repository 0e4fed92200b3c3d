import type { Lineage, Principal } from '../kernel/call-context.js';
import type { AgentId, OrgId, TaskId } from '../kernel/ids.js';
import { errorCodes, RialtoError, type ErrorCode } from '../kernel/errors.js';
import type { Json, JsonObject } from '../kernel/json.js';
import type { Artifact, Message, StreamResponse, Task } from '../protocol/a2a/model.js';
import { terminalStates, wordOf, type TaskState } from '../protocol/a2a/states.js';

/** A task as it is stored, in the words of the model. A value: a change makes a new one (task.lifecycle.ts). */
export interface StoredTask {
  readonly id: TaskId;
  readonly orgId: OrgId;
  readonly agentId: AgentId;
  readonly agentName: string;
  readonly contextId: string;
  readonly principal: Principal;
  readonly depth: number;
  /** Who delegated to whom before it; absent for a task of a caller from outside. */
  readonly lineage?: Lineage;
  readonly state: TaskState;
  readonly statusMessage?: Message;
  /** Milliseconds since the epoch. */
  readonly statusAt: number;
  readonly history: readonly Message[];
  readonly artifacts: readonly Artifact[];
  /** The row holds these artifacts already. */
  readonly isFolded: boolean;
  readonly metadata?: JsonObject;
  /** The number of its last event. */
  readonly seq: number;
  readonly epoch: number;
  readonly memo?: Json;
}

/** An event with its number in the log of its task. */
export interface NumberedEvent {
  readonly seq: number;
  readonly body: StreamResponse;
}

/** `kind:id`; what a task is scoped by beside its org. */
export function ownerOf({ kind, id }: Pick<Principal, 'kind' | 'id'>): string {
  return `${kind}:${id}`;
}

export function isEnded({ state }: Pick<StoredTask, 'state'>): boolean {
  return terminalStates.has(state);
}

/** What the end of a task means that did not end well: with the meaning of whoever worked on it, where that one gave one. */
export function failureOf({ id: taskId, state, statusMessage }: StoredTask): RialtoError {
  const told = statusMessage?.metadata?.errorCode;
  const code = typeof told === 'string' && Object.hasOwn(errorCodes, told) ? (told as ErrorCode) : 'remote_task_failed';
  return new RialtoError(code, {
    message: wordsOf(statusMessage) || undefined,
    data: { taskId, state: wordOf(state) },
  });
}

/** What a message says in words. */
export function wordsOf(message: Message | undefined): string {
  return (message?.parts ?? []).flatMap(({ text }) => text ?? []).join('\n');
}

/** The task as callers see it: at most `historyLength` of the newest messages, none of them the member for 0 (v1.0 section 3.2.4). */
export function taskView(
  task: StoredTask,
  { historyLength, artifacts = true }: { historyLength?: number; artifacts?: boolean } = {},
): Task {
  const { history } = task;
  const shown = historyLength === undefined ? history : historyLength === 0 ? [] : history.slice(-historyLength);
  return {
    id: task.id,
    contextId: task.contextId,
    status: {
      state: task.state,
      ...(task.statusMessage && { message: task.statusMessage }),
      timestamp: new Date(task.statusAt).toISOString(),
    },
    ...(artifacts && { artifacts: [...task.artifacts] }),
    ...(historyLength !== 0 && { history: [...shown] }),
    ...(task.metadata && { metadata: task.metadata }),
  };
}
