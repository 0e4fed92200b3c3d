import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import type { Tx } from '../../platform/database/tx.js';
import type { PublishedAgentEntity } from './published-agent.entity.js';
import { noPublishedAgent, PublishedAgentStore } from './published-agent.store.js';
import { apiKeyOf, definitionOf } from './published-definition.js';
import { PublishedChecks } from './published-checks.js';
import { PublishedViews } from './published-views.js';
import { PublishedWriter, type Written } from './published-writer.js';
import type { ChangePublished, NewPublishedView, PublishAgent } from './publishing.types.js';

/** Administers published agents. */
@Injectable()
export class PublishingService {
  constructor(
    private readonly admin: AdminActs,
    private readonly store: PublishedAgentStore,
    private readonly checks: PublishedChecks,
    private readonly writer: PublishedWriter,
    private readonly views: PublishedViews,
  ) {}

  /**
   * Publishes an agent. Throws `invalid_params`, `url_not_allowed`, `slug_taken` or `unprocessable` (too many
   * agents).
   */
  async create(ctx: CallContext, input: PublishAgent): Promise<NewPublishedView> {
    const written = await this.admin.prepareAndWrite(
      ctx,
      'published.create',
      { agent: input.name, executor: input.executor.kind },
      () => this.checks.admitted(ctx.org, input),
      async (tx, admitted) => {
        await this.store.lockOrg(tx, ctx.org.id);
        const wanted = { definition: definitionOf(admitted), apiKey: apiKeyOf(admitted) };
        return this.writer.insert(tx, ctx.org.id, 'api', wanted);
      },
    );
    return this.viewWritten(ctx, written);
  }

  /**
   * Changes an agent. Throws as `create` does, `not_found`, or `conflict` for an agent that the API did not create.
   */
  async change(ctx: CallContext, idOrName: string, input: ChangePublished): Promise<NewPublishedView> {
    const written = await this.admin.prepareAndWrite(
      ctx,
      'published.change',
      { agent: idOrName, fields: Object.keys(input) },
      async () => {
        await this.findChangeable(ctx, idOrName);
        return this.checks.admitted(ctx.org, input);
      },
      async (tx, admitted) => {
        await this.store.lockOrg(tx, ctx.org.id);
        // The change applies to the current row, so that changes of another admin in the meantime stay.
        const row = await this.findChangeable(ctx, idOrName, tx);
        return this.writer.change(tx, row, admitted);
      },
    );
    return this.viewWritten(ctx, written);
  }

  /** Archives an agent: all doors and lists drop it and its name becomes free. Its tasks stay. */
  archive(ctx: CallContext, idOrName: string): Promise<void> {
    return this.admin.prepareAndWrite(
      ctx,
      'published.delete',
      { agent: idOrName },
      () => this.findChangeable(ctx, idOrName),
      async (tx, row) => {
        if (!(await this.store.archive(tx, row))) throw noPublishedAgent();
      },
    );
  }

  /**
   * Creates a new secret for an `http` or `mailbox` executor and returns it once. The previous secret becomes
   * invalid.
   */
  rotateSecret(ctx: CallContext, idOrName: string): Promise<{ secret: string }> {
    return this.admin.prepareAndWrite(
      ctx,
      'published.rotate-secret',
      { agent: idOrName },
      () => this.store.findOrFail(ctx.org.id, idOrName),
      async (tx, row) => {
        await this.store.lockOrg(tx, ctx.org.id);
        return { secret: await this.writer.rotateSecret(tx, row) };
      },
    );
  }

  /**
   * Returns an agent that the API created. Throws `conflict` for a declared one, because the next reconciliation
   * would undo the change.
   */
  private async findChangeable(ctx: CallContext, idOrName: string, tx?: Tx): Promise<PublishedAgentEntity> {
    const row = await this.store.findOrFail(ctx.org.id, idOrName, tx);
    if (row.source === 'api') return row;
    throw new RialtoError('conflict', {
      message: `this agent is declared by ${declaredBy[row.source]}`,
      hint: 'change its declaration instead',
    });
  }

  private async viewWritten(ctx: CallContext, { row, secret }: Written): Promise<NewPublishedView> {
    return { ...(await this.views.viewRow(row, ctx.org)), ...(secret !== undefined && { secret }) };
  }
}

const declaredBy = {
  config: 'the configuration file',
  folder: 'the agents folder',
  conformance: 'RIALTO_CONFORMANCE_AGENT',
} as const;
