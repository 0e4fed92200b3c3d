import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { Cursors, type Page } from '../../platform/http/cursor.js';
import { atOnce, eachInTurns } from '../../platform/jobs/in-turns.js';
import { skillSchema } from '../../protocol/mcp/schema/tool-schema.js';
import type { AgentEntity } from '../agents/agent.entity.js';
import { AgentStore, keptChanges } from '../agents/agent.store.js';
import { agentView, rivalSlugs, understand } from '../agents/agent-view.js';
import { RegistryService } from '../registry.service.js';
import type { AgentQuery, AgentView, CardChangeView } from '../registry.types.js';
import { noSuchAgent } from './agent-writer.js';

/** Shows registered agents to callers that may discover them. */
@Injectable()
export class AgentReadService {
  constructor(
    private readonly admin: AdminActs,
    private readonly store: AgentStore,
    private readonly registry: RegistryService,
    private readonly cursors: Cursors,
  ) {}

  list(ctx: CallContext, query: AgentQuery): Promise<Page<AgentView>> {
    return this.admin.read(ctx, 'agent.list', async () => {
      const scope = `agents:${ctx.org.id}`;
      const [after] = query.cursor ? this.cursors.decode(scope, query.cursor, 1) : [];
      const { rows, lastSlug } = await this.store.findPage(ctx.org.id, query, after);
      const shown = await Promise.all(rows.map((row) => this.registry.mayDiscover(ctx, row.slug)));
      const visible = rows.filter((_, index) => shown[index]);
      return {
        items: await eachInTurns(visible, (row) => this.viewAgent(row)),
        nextCursor: lastSlug === undefined ? null : this.cursors.encode(scope, [lastSlug]),
      };
    });
  }

  get(ctx: CallContext, idOrSlug: string): Promise<AgentView> {
    return this.admin.read(ctx, 'agent.get', async () => this.viewAgent(await this.visibleAgent(ctx, idOrSlug)));
  }

  /** Returns the card, byte for byte as the agent sent it. */
  card(ctx: CallContext, idOrSlug: string): Promise<string> {
    return this.admin.read(ctx, 'agent.card', async () => {
      const { card } = await this.visibleAgent(ctx, idOrSlug);
      if (card === null) throw new RialtoError('not_found', { message: 'the card of this agent was not fetched yet' });
      return card;
    });
  }

  changes(ctx: CallContext, idOrSlug: string): Promise<Page<CardChangeView>> {
    return this.admin.read(ctx, 'agent.changes', async () => {
      const rows = await this.store.findChanges((await this.visibleAgent(ctx, idOrSlug)).id, keptChanges);
      return {
        items: rows.map((row) => ({ detectedAt: row.detectedAt.toISOString(), changes: row.changes })),
        nextCursor: null,
      };
    });
  }

  /** Returns an agent that the caller may discover. Throws `not_found`. */
  async visibleAgent(ctx: CallContext, idOrSlug: string): Promise<AgentEntity> {
    const row = await this.store.find(ctx.org.id, idOrSlug);
    if (!row || !(await this.registry.mayDiscover(ctx, row.slug))) throw noSuchAgent();
    return row;
  }

  /**
   * Shows an agent. After a change no snapshot is fresh; it is read only when the agent may share a tool name with
   * another one.
   */
  async viewAgent(row: AgentEntity): Promise<AgentView> {
    const fresh = this.registry.peekSnapshot(row.orgId);
    const alone = fresh?.byId.get(row.id) ?? atOnce(understand([row]))[0]!;
    const hasRivals = !fresh && (await this.store.hasAny(row.orgId, rivalSlugs(alone)));
    const agent = hasRivals ? ((await this.registry.snapshot(row.orgId)).byId.get(row.id) ?? alone) : alone;
    // The view needs each of them, and large ones take milliseconds to check.
    await eachInTurns(agent.card?.skills ?? [], ({ inputSchema }) => skillSchema(inputSchema));
    return agentView({ ...agent, row });
  }
}
