import type { Message, StreamResponse, TaskStatus } from '../../protocol/a2a/model.js';
import { wordOf, type TaskStateWord } from '../../protocol/a2a/states.js';
import type { SendReply } from '../transports/send-reply.js';

/** The status of a task with the v0.3 word of its state; `message` is the answer or the question of the agent. */
export interface WordedStatus {
  readonly state: TaskStateWord;
  readonly message?: Message;
  readonly timestamp?: string;
}

/**
 * A value of v1.0 with the status of its task, as older clients read it. The status is not enumerable: the value stays
 * valid when it is sent on.
 */
export type WithStatus<Value> = Value & { readonly status: WordedStatus };

/** Adds the status to an answer; a message is a completed one. */
export function replyWithStatus(reply: SendReply): WithStatus<SendReply> {
  return withStatus(reply, 'task' in reply ? worded(reply.task.status) : completedBy(reply.message));
}

/** Adds the status to each event of a stream; an artifact has the status of the event before it. */
export async function* withStatuses(
  events: AsyncIterable<StreamResponse>,
): AsyncGenerator<WithStatus<StreamResponse>, void> {
  let status: WordedStatus = { state: 'submitted' };
  for await (const event of events) {
    if ('task' in event) status = worded(event.task.status);
    if ('statusUpdate' in event) status = worded(event.statusUpdate.status);
    if ('message' in event) status = completedBy(event.message);
    yield withStatus(event, status);
  }
}

function withStatus<Value extends object>(value: Value, status: WordedStatus): WithStatus<Value> {
  return Object.defineProperty(value, 'status', { value: status }) as WithStatus<Value>;
}

function worded({ state, message, timestamp }: TaskStatus): WordedStatus {
  return { state: wordOf(state), ...(message && { message }), ...(timestamp !== undefined && { timestamp }) };
}

function completedBy(message: Message): WordedStatus {
  return { state: 'completed', message };
}
