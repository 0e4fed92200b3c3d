import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { baseUrlOf } from '../refresh/card-fetcher.js';
import { CardLooks } from '../refresh/card-looks.js';
import { CardRefresher } from '../refresh/card-refresher.js';
import type { AgentView, ApproveCard, ChangeAgent, RegisterAgent } from '../registry.types.js';
import { AgentReadService } from './agent-read.service.js';
import { AgentWriter } from './agent-writer.js';

/** Registers and administers agents of other systems. */
@Injectable()
export class AgentAdminService {
  constructor(
    private readonly admin: AdminActs,
    private readonly agents: AgentReadService,
    private readonly writer: AgentWriter,
    private readonly looks: CardLooks,
    private readonly refresher: CardRefresher,
  ) {}

  /**
   * Registers an agent. Throws `url_not_allowed`, `card_invalid`, `slug_taken`, `conflict` (same URL) or
   * `unprocessable` (too many agents).
   */
  async register(ctx: CallContext, input: RegisterAgent): Promise<AgentView> {
    const url = baseUrlOf(input.url);
    const find = () => this.looks.checkNew(input.url, input.credential, ctx.signal);
    const facts = { url, trustLevel: input.trustLevel };
    return this.agents.viewAgent(
      await this.admin.prepareAndWrite(ctx, 'agent.register', facts, find, (tx, found) =>
        this.writer.insertRegistered(tx, ctx.org.id, input, found),
      ),
    );
  }

  async change(ctx: CallContext, idOrSlug: string, input: ChangeAgent): Promise<AgentView> {
    const facts = { agent: idOrSlug, fields: Object.keys(input) };
    return this.agents.viewAgent(
      await this.admin.prepareAndWrite(
        ctx,
        'agent.change',
        facts,
        () => this.agents.visibleAgent(ctx, idOrSlug),
        (tx, row) => this.writer.change(tx, row, input),
      ),
    );
  }

  /**
   * Ends the quarantine of an agent. Throws `conflict` when its card is not the reviewed one, `unprocessable` when
   * its signature forbids it.
   */
  async approve(ctx: CallContext, idOrSlug: string, { cardHash }: ApproveCard): Promise<AgentView> {
    const facts = { agent: idOrSlug, cardHash };
    return this.agents.viewAgent(
      await this.admin.prepareAndWrite(
        ctx,
        'agent.approve',
        facts,
        () => this.agents.visibleAgent(ctx, idOrSlug),
        (tx, { id }) => this.refresher.approve(tx, id, cardHash),
      ),
    );
  }

  remove(ctx: CallContext, idOrSlug: string): Promise<void> {
    return this.admin.prepareAndWrite(
      ctx,
      'agent.delete',
      { agent: idOrSlug },
      () => this.agents.visibleAgent(ctx, idOrSlug),
      (tx, row) => this.writer.remove(tx, row),
    );
  }

  /** Fetches the card now. A changed card is stored; a failure sets the health of the agent (RE-59). */
  async refetch(ctx: CallContext, idOrSlug: string): Promise<AgentView> {
    const refresh = async () => this.refresher.checkCard(await this.agents.visibleAgent(ctx, idOrSlug), ctx.signal);
    return this.agents.viewAgent(
      await this.admin.prepareAndWrite(ctx, 'agent.refetch', { agent: idOrSlug }, refresh, (tx, attempt) =>
        this.refresher.storeAttempt(tx, attempt, true),
      ),
    );
  }
}
