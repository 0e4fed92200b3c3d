import { Injectable } from '@nestjs/common';
import { callerOf, type CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { Cursors, type Page } from '../../platform/http/cursor.js';
import { conversationState, messagesOf } from '../../protocol/a2a/conversation/conversation.js';
import { PublishedService } from '../../registry/published.service.js';
import { ConversationStore, type TaskPosition } from '../storage/conversation.store.js';
import { TaskPages } from '../storage/task-pages.js';
import { taskView, type StoredTask } from '../task.types.js';
import type {
  ConversationDetail,
  ConversationQuery,
  ConversationSummary,
  MessagesQuery,
} from './conversation.types.js';

/**
 * Shows the tasks of a context as a conversation with messages (RI-02). An admin sees every conversation of the org,
 * other callers see their own.
 */
@Injectable()
export class ConversationService {
  constructor(
    private readonly acts: AdminActs,
    private readonly published: PublishedService,
    private readonly pages: TaskPages,
    private readonly store: ConversationStore,
    private readonly cursors: Cursors,
  ) {}

  /** Lists conversations, newest status first. Throws `invalid_params` for a cursor of another list. */
  list(ctx: CallContext, { agent: name, state, limit, cursor }: ConversationQuery): Promise<Page<ConversationSummary>> {
    return this.acts.read(ctx, 'conversation.list', async () => {
      const { agents } = await this.published.snapshot(ctx.org.id);
      const agent = name === undefined ? undefined : agents.find((one) => one.name === name || one.id === name)?.id;
      if (name !== undefined && agent === undefined) return { items: [], nextCursor: null };
      const owner = ownerFor(ctx);
      const filter = { org: ctx.org.id, agent, owner, isNewestOfContext: true, conversation: state } as const;
      const selection = { artifacts: false, history: false, statusMessage: true };
      const { tasks, nextCursor } = await this.pages.readPage('conversations', filter, { limit, cursor, ...selection });
      return { items: tasks.map(summaryOf), nextCursor: nextCursor ?? null };
    });
  }

  /**
   * Returns a conversation with a page of its messages. When several callers use the same context, an admin gets the
   * conversation with the newest task, or that of `owner`. Throws `not_found`, also for a conversation of another
   * owner, and `invalid_params` for a cursor of another conversation.
   */
  get(ctx: CallContext, contextId: string, { owner, limit, cursor }: MessagesQuery): Promise<ConversationDetail> {
    return this.acts.read(ctx, 'conversation.get', async () => {
      const own = ownerFor(ctx);
      const isAnothers = own !== undefined && owner !== undefined && owner !== own;
      const newest = isAnothers ? undefined : await this.store.findNewest(ctx.org.id, contextId, own ?? owner);
      if (!newest) throw new RialtoError('not_found', { message: 'no such conversation' });
      const key = { org: ctx.org.id, owner: callerOf(newest.principal), contextId };
      const scope = `conversation:${JSON.stringify(key)}`;
      const after = cursor === undefined ? undefined : (this.cursors.decode(scope, cursor, 2) as [string, string]);
      const { tasks, more } = await this.store.readTasks(key, limit, after);
      const last = tasks.at(-1);
      const position: TaskPosition | undefined = more && last ? [last.at, last.task.id] : undefined;
      const items = tasks.flatMap(({ task }) =>
        messagesOf(taskView(task)).map((message) => ({ taskId: task.id, agent: task.agentName, message })),
      );
      const nextCursor = position ? this.cursors.encode(scope, position) : null;
      return { ...summaryOf(newest), messages: { items, nextCursor } };
    });
  }
}

/** The caller itself, as the only owner of conversations that it sees; undefined for an admin. */
function ownerFor({ principal }: CallContext): string | undefined {
  return principal.role === 'admin' ? undefined : callerOf(principal);
}

function summaryOf({
  id,
  agentName,
  contextId,
  principal,
  state,
  statusMessage,
  statusAt,
}: StoredTask): ConversationSummary {
  return {
    contextId,
    owner: { kind: principal.kind, id: principal.id },
    state: conversationState({ state, message: statusMessage }),
    agent: agentName,
    taskId: id,
    statusAt: new Date(statusAt).toISOString(),
  };
}
