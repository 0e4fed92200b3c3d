import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { CallContext, OrgRef } from '../../kernel/call-context.js';
import { canonicalJson } from '../../kernel/canonical-json.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId, type AgentId } from '../../kernel/ids.js';
import type { Tx } from '../../platform/database/tx.js';
import { Cursors, pageOf, type Page } from '../../platform/http/cursor.js';
import { ExecutorSecrets } from '../executor-secrets.js';
import type { PublishedAgentEntity } from './published-agent.entity.js';
import { PublishedAgentStore } from './published-agent.store.js';
import { apiKeyOf, definitionOf } from './published-definition.js';
import { PublishedChecks } from './published-checks.js';
import { PublishedViews } from './published-views.js';
import { RegistryActs } from './registry-acts.js';
import type { Definition, ExecutorConfig, LlmConfig, PublishedSource } from '../published.types.js';
import type {
  ChangePublished,
  NewPublishedView,
  PublishAgent,
  PublishedQuery,
  PublishedView,
} from './publishing.types.js';

interface Written {
  readonly row: PublishedAgentEntity;
  /** The secret that this change created. */
  readonly secret?: string;
}

/** The definition of an agent. Its key is separate, because views of the definition must not show it. */
export interface Wanted {
  readonly definition: Definition;
  /** Key of a model: null for none, undefined to keep the stored one. */
  readonly apiKey?: string | null;
}

/** Administers published agents. */
@Injectable()
export class PublishingService {
  constructor(
    private readonly store: PublishedAgentStore,
    private readonly checks: PublishedChecks,
    private readonly views: PublishedViews,
    private readonly acts: RegistryActs,
    private readonly secrets: ExecutorSecrets,
    private readonly cursors: Cursors,
  ) {}

  /**
   * Publishes an agent. Throws `invalid_params`, `url_not_allowed`, `slug_taken` or `unprocessable` (too many
   * agents).
   */
  async create(ctx: CallContext, input: PublishAgent): Promise<NewPublishedView> {
    const written = await this.acts.admin.prepareAndWrite(
      ctx,
      'published.create',
      { agent: input.name, executor: input.executor.kind },
      () => this.checks.admitted(ctx.org, input),
      async (tx, admitted) => {
        await this.store.lock(tx, ctx.org.id);
        return this.insert(tx, ctx.org, 'api', { definition: definitionOf(admitted), apiKey: apiKeyOf(admitted) });
      },
    );
    return this.answer(ctx, written);
  }

  list(ctx: CallContext, query: PublishedQuery): Promise<Page<PublishedView>> {
    return this.acts.admin.read(ctx, 'published.list', async () => {
      const scope = `published:${ctx.org.id}`;
      const [after] = query.cursor ? this.cursors.decode(scope, query.cursor, 1) : [];
      const rows = await this.store.findPage(ctx.org.id, query, after);
      const views = await this.views.ofAll(rows, ctx.org);
      return pageOf(
        rows,
        query.limit,
        (row) => views.get(row.id)!,
        (row) => this.cursors.encode(scope, [row.name]),
      );
    });
  }

  get(ctx: CallContext, idOrName: string): Promise<PublishedView> {
    return this.acts.admin.read(ctx, 'published.get', async () =>
      this.views.of(await this.known(ctx, idOrName), ctx.org),
    );
  }

  /**
   * Changes an agent. Throws as `create` does, `not_found`, or `conflict` for an agent that the API did not create.
   */
  async change(ctx: CallContext, idOrName: string, input: ChangePublished): Promise<NewPublishedView> {
    const written = await this.acts.admin.prepareAndWrite(
      ctx,
      'published.change',
      { agent: idOrName, fields: Object.keys(input) },
      async () => {
        await this.ofApi(ctx, idOrName);
        return this.checks.admitted(ctx.org, input);
      },
      async (tx, admitted) => {
        await this.store.lock(tx, ctx.org.id);
        // The change applies to the current row, so that changes of another admin in the meantime stay.
        const row = await this.ofApi(ctx, idOrName, tx);
        const before = { ...row, executor: this.secrets.openAddress(row) };
        return this.update(tx, row, { definition: definitionOf(admitted, before), apiKey: apiKeyOf(admitted) });
      },
    );
    return this.answer(ctx, written);
  }

  /** Archives an agent: all doors and lists drop it and its name becomes free. Its tasks stay. */
  archive(ctx: CallContext, idOrName: string): Promise<void> {
    return this.acts.admin.prepareAndWrite(
      ctx,
      'published.delete',
      { agent: idOrName },
      () => this.ofApi(ctx, idOrName),
      async (tx, row) => {
        if (!(await this.archiveRow(tx, row))) throw noSuchAgent();
      },
    );
  }

  /**
   * Creates a new secret for an `http` or `mailbox` executor and returns it once. The previous secret becomes
   * invalid.
   */
  rotateSecret(ctx: CallContext, idOrName: string): Promise<{ secret: string }> {
    return this.acts.admin.prepareAndWrite(
      ctx,
      'published.rotate-secret',
      { agent: idOrName },
      () => this.known(ctx, idOrName),
      async (tx, row) => {
        if (!hasSecret(row.executor))
          throw new RialtoError('unprocessable', {
            message: `the executor of this agent is "${row.executor.kind}"; only http and mailbox executors have a secret`,
          });
        const { secret, executorSecret } = this.newSecret(row, row.executor);
        await this.store.lock(tx, ctx.org.id);
        await this.store.update(tx, row.id, { executorSecret });
        this.notifyChanged(tx, row);
        return { secret };
      },
    );
  }

  /** Inserts an agent; call it under the lock of the org. */
  async insert(tx: Tx, org: OrgRef, source: PublishedSource, { definition, apiKey }: Wanted): Promise<Written> {
    const place = { id: newId<AgentId>(), orgId: org.id };
    const { secret, executorSecret } = this.secretFor(place, { definition, apiKey });
    const address = this.secrets.sealAddress(place, definition.executor);
    const row = await this.store.insert(tx, { ...place, ...definition, ...address, source, executorSecret });
    this.notifyChanged(tx, row);
    return { row, secret };
  }

  /** Updates an agent; call it under the lock of the org. It restores an archived agent. */
  async update(tx: Tx, before: PublishedAgentEntity, { definition, apiKey }: Wanted): Promise<Written> {
    const { secret, executorSecret } = this.secretFor(before, { definition, apiKey }, before);
    const address = this.secrets.sealAddress(before, definition.executor);
    const change = { ...definition, ...address, executorSecret, archivedAt: null };
    const row = await this.store.update(tx, before.id, change);
    this.notifyChanged(tx, row);
    return { row, secret };
  }

  /** Returns false when the agent was already archived. */
  async archiveRow(tx: Tx, row: PublishedAgentEntity): Promise<boolean> {
    const archived = await this.store.archive(tx, row.id);
    if (archived) this.notifyChanged(tx, row);
    return archived;
  }

  private notifyChanged(tx: Tx, { orgId, id }: Pick<PublishedAgentEntity, 'orgId' | 'id'>): void {
    this.acts.tellPublished(tx, { orgId, id });
  }

  /**
   * Returns the secret for an executor. An executor of the same kind keeps its secret; a changed kind gets a new one,
   * if it needs one.
   */
  private secretFor(
    place: Pick<PublishedAgentEntity, 'id' | 'orgId'>,
    { definition: { executor }, apiKey }: Wanted,
    before?: PublishedAgentEntity,
  ): { secret?: string; executorSecret: string | null } {
    if (executor.kind === 'llm') return { executorSecret: this.keyFor(place, executor, apiKey, before) };
    if (!hasSecret(executor)) return { executorSecret: null };
    const known = before?.executor.kind === executor.kind ? before.executorSecret : null;
    return known ? { executorSecret: known } : this.newSecret(place, executor);
  }

  /**
   * Returns the sealed key of a model. A key is valid only for the origin that it was given for. Throws
   * `unprocessable` when the origin changes and no key is given.
   */
  private keyFor(
    place: Pick<PublishedAgentEntity, 'id' | 'orgId'>,
    executor: LlmConfig,
    apiKey: string | null | undefined,
    before?: PublishedAgentEntity,
  ): string | null {
    if (apiKey !== undefined) return apiKey === null ? null : this.secrets.seal(place, apiKey);
    if (before?.executor.kind !== 'llm' || before.executorSecret === null) return null;
    if (new URL(before.executor.url).origin === new URL(executor.url).origin) return before.executorSecret;
    throw new RialtoError('unprocessable', {
      message: 'executor.apiKey: the stored key was given for another origin',
      hint: 'give the key for the new URL, or null for no key',
      violations: [{ field: 'executor.apiKey', description: 'is required when the origin of the URL changes' }],
    });
  }

  /** Returns whether a declaration equals the stored agent. */
  isSame(row: PublishedAgentEntity, { definition, apiKey }: Wanted): boolean {
    const wanted = { ...definition, executor: this.secrets.withoutQuery(definition.executor).config };
    const names = Object.keys(wanted) as (keyof Definition)[];
    const isAlike = names.every((name) => canonicalJson(row[name]) === canonicalJson(wanted[name]));
    return isAlike && this.hasKey(row, apiKey);
  }

  private hasKey(row: PublishedAgentEntity, apiKey: string | null | undefined): boolean {
    if (row.executor.kind !== 'llm' || row.executorSecret === null) return !apiKey;
    return this.secrets.open(row, row.executorSecret).reveal() === apiKey;
  }

  /**
   * Creates a secret. For `http`: the format of Standard Webhooks, 32 bytes in base64. For a mailbox: it contains the
   * agent id, so that the gateway finds the agent from the secret.
   */
  private newSecret(place: Pick<PublishedAgentEntity, 'id' | 'orgId'>, { kind }: WithSecret) {
    const bytes = randomBytes(32);
    const secret =
      kind === 'http' ? `whsec_${bytes.toString('base64')}` : `mbx_${place.id}_${bytes.toString('base64url')}`;
    return { secret, executorSecret: this.secrets.seal(place, secret) };
  }

  private async known(ctx: CallContext, idOrName: string, tx?: Tx): Promise<PublishedAgentEntity> {
    const row = await this.store.find(ctx.org.id, idOrName, tx);
    if (!row) throw noSuchAgent();
    return row;
  }

  /**
   * Returns an agent that the API created. Throws `conflict` for a declared one, because the next reconciliation
   * would undo the change.
   */
  private async ofApi(ctx: CallContext, idOrName: string, tx?: Tx): Promise<PublishedAgentEntity> {
    const row = await this.known(ctx, idOrName, tx);
    if (row.source === 'api') return row;
    throw new RialtoError('conflict', {
      message: `this agent is declared by ${declaredBy[row.source]}`,
      hint: 'change its declaration instead',
    });
  }

  private async answer(ctx: CallContext, { row, secret }: Written): Promise<NewPublishedView> {
    return { ...(await this.views.of(row, ctx.org)), ...(secret !== undefined && { secret }) };
  }
}

type WithSecret = Extract<ExecutorConfig, { kind: 'http' | 'mailbox' }>;

function hasSecret(executor: ExecutorConfig): executor is WithSecret {
  return executor.kind === 'http' || executor.kind === 'mailbox';
}

const declaredBy = {
  config: 'the configuration file',
  folder: 'the agents folder',
  conformance: 'RIALTO_CONFORMANCE_AGENT',
} as const;

function noSuchAgent(): RialtoError {
  return new RialtoError('not_found', { message: 'no such agent' });
}
