import type { Lineage, Principal } from '../kernel/call-context.js';
import type { AgentId, OrgId, TaskId } from '../kernel/ids.js';
import { errorCodes, RialtoError, type ErrorCode } from '../kernel/errors.js';
import type { Json, JsonObject } from '../kernel/json.js';
import type { TrustTier } from '../kernel/trust.js';
import type { Artifact, Message, StreamResponse, Task } from '../protocol/a2a/model.js';
import { terminalStates, wordOf, type TaskState } from '../protocol/a2a/states.js';

/** A stored task, with the names of the A2A model. Immutable: a change makes a new value (task.lifecycle.ts). */
export interface StoredTask {
  readonly id: TaskId;
  readonly orgId: OrgId;
  readonly agentId: AgentId;
  readonly agentName: string;
  readonly contextId: string;
  readonly principal: Principal;
  readonly depth: number;
  /** Earlier callers in the delegation chain; absent for a task of an outside caller. */
  readonly lineage?: Lineage;
  readonly state: TaskState;
  readonly statusMessage?: Message;
  /** Milliseconds since the epoch. */
  readonly statusAt: number;
  readonly history: readonly Message[];
  readonly artifacts: readonly Artifact[];
  /** The row holds the history and artifacts as they were after this event; later events of the log have the rest. */
  readonly foldedSeq: number;
  readonly metadata?: JsonObject;
  /** The lowest tier of its messages: that of the sender's org for an encrypted one, 0 for cleartext (RI-07). */
  readonly trustTier: TrustTier;
  /** Sequence number of the last event. */
  readonly seq: number;
  readonly epoch: number;
  readonly memo?: Json;
}

/** An event with its number in the log of its task. */
export interface NumberedEvent {
  readonly seq: number;
  readonly body: StreamResponse;
  /** Messages that the history gained with the event, beside those of a new task. Readers do not receive them. */
  readonly messages?: readonly Message[];
}

export function isEnded({ state }: Pick<StoredTask, 'state'>): boolean {
  return terminalStates.has(state);
}

/**
 * The error for a task that did not complete. Its code is the `errorCode` that the executor reported, else
 * `remote_task_failed`.
 */
export function failureOf({ id: taskId, state, statusMessage }: StoredTask): RialtoError {
  const reported = statusMessage?.metadata?.errorCode;
  const code =
    typeof reported === 'string' && Object.hasOwn(errorCodes, reported)
      ? (reported as ErrorCode)
      : 'remote_task_failed';
  return new RialtoError(code, {
    message: wordsOf(statusMessage) || undefined,
    data: { taskId, state: wordOf(state) },
  });
}

export function noSuchTask(id: string): RialtoError {
  return new RialtoError('task_not_found', { data: { taskId: id.slice(0, 256) } });
}

/** The text parts of a message, joined by newlines. */
export function wordsOf(message: Message | undefined): string {
  return (message?.parts ?? []).flatMap(({ text }) => text ?? []).join('\n');
}

/** Member of a task's metadata with its tier; absent for tier 0. Only the gateway sets it. */
export const trustTierMember = 'rialto/trustTier';

/**
 * The task as callers see it, with at most the newest `historyLength` messages; for 0 the member `history` is absent
 * (v1.0 section 3.2.4).
 */
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
    ...((task.metadata || task.trustTier > 0) && { metadata: metadataOf(task) }),
  };
}

function metadataOf({ metadata, trustTier }: StoredTask): JsonObject {
  return { ...metadata, ...(trustTier > 0 && { [trustTierMember]: trustTier }) };
}
