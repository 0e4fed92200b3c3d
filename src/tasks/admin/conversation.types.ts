import { z } from 'zod';
import { conversationStates } from '../../protocol/a2a/conversation/conversation.js';

/** The id of a context. Any other text matches no conversation. */
export const ContextParam = z.string().max(256);

const state = z.enum(conversationStates);
const paged = { limit: z.coerce.number().int().min(1).max(200).default(50), cursor: z.string().max(500).optional() };

export const ConversationQuery = z.strictObject({
  agent: z.string().max(200).optional(),
  state: state.optional(),
  ...paged,
});
export type ConversationQuery = z.output<typeof ConversationQuery>;

/** `owner` (`kind:id`) selects the conversation of another caller with the same context, for admins. */
export const MessagesQuery = z.strictObject({ owner: z.string().max(400).optional(), ...paged });
export type MessagesQuery = z.output<typeof MessagesQuery>;

/** The tasks of one caller in one context. */
export const ConversationSummary = z.object({
  contextId: z.string(),
  owner: z.object({ kind: z.string(), id: z.string() }),
  /** State, agent and id of the newest task. */
  state,
  agent: z.string(),
  taskId: z.string(),
  /** Time of the last change of that task's state, ISO 8601. */
  statusAt: z.string(),
});
export type ConversationSummary = z.output<typeof ConversationSummary>;

/** A conversation with a page of its messages, oldest first. A page holds the messages of up to `limit` tasks. */
export const ConversationDetail = ConversationSummary.extend({
  messages: z.object({
    /** `message` is a Message of A2A v1.0. */
    items: z.array(z.object({ taskId: z.string(), agent: z.string(), message: z.unknown() })),
    nextCursor: z.string().nullable(),
  }),
});
export type ConversationDetail = z.output<typeof ConversationDetail>;
