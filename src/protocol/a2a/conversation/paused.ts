import { isJsonObject, type JsonObject } from '../../../kernel/json.js';
import type { A2aVersion, Message } from '../model.js';

/*
 * A2A has no state for work that an agent has paused: such a task is working for every caller (RI-35). The pause itself
 * is the member `paused` in the metadata of the status message, so that it is stored, streamed and posted with it.
 */

/** True for the state word of an agent that has paused its work. */
export function isPausedWord(word: string): boolean {
  return /^(?:task_state_)?paused$/i.test(word);
}

/** Marks the message of a pause. */
export function pausedMessage<M extends Pick<Message, 'metadata'>>(message: M): M {
  return { ...message, metadata: { ...message.metadata, paused: true } };
}

/** True when the status message of a working task says that the work is paused. */
export function isPaused(message: Pick<Message, 'metadata'> | undefined): boolean {
  return message?.metadata?.paused === true;
}

const pauseText = 'The agent has paused its work.';
/** The message of a pause without one, in the shape of each version. */
const pauseMessages = {
  '0.3': { role: 'agent', parts: [{ kind: 'text', text: pauseText }] },
  '1.0': { messageId: 'paused', role: 'ROLE_AGENT', parts: [{ text: pauseText }] },
} satisfies Record<A2aVersion, JsonObject>;

/**
 * Marks the status of a remote agent in place when its state is a word for a pause; adds a missing message. A message
 * that is a text, as some older agents send it, is left to the reader of that version.
 */
export function keepPause(status: JsonObject, version: A2aVersion): void {
  if (typeof status.state !== 'string' || !isPausedWord(status.state) || typeof status.message === 'string') return;
  const message: JsonObject = isJsonObject(status.message) ? status.message : pauseMessages[version];
  const metadata = isJsonObject(message.metadata) ? message.metadata : {};
  status.message = { ...message, metadata: { ...metadata, paused: true } };
}
