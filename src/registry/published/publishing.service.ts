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
  /** Made by this change. */
  readonly secret?: string;
}

/** What an agent is to be; its key apart, for nobody who has the rest may see it. */
export interface Wanted {
  readonly definition: Definition;
  /** Of a model: null for none, undefined to keep what there is. */
  readonly apiKey?: string | null;
}

/** Administration of agents of our own. */
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

  /** Throws `invalid_params`, `url_not_allowed`, `slug_taken` or `unprocessable` (too many). */
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

  /** Throws as `create` does, `not_found`, or `conflict` for an agent that was declared elsewhere. */
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
        // What another admin changed meanwhile stays: this change goes on top of the row as it is now.
        const row = await this.ofApi(ctx, idOrName, tx);
        const before = { ...row, executor: this.secrets.openAddress(row) };
        return this.update(tx, row, { definition: definitionOf(admitted, before), apiKey: apiKeyOf(admitted) });
      },
    );
    return this.answer(ctx, written);
  }

  /** Takes it from every door and list and frees its name; its tasks stay. */
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

  /** A new secret of an `http` or `mailbox` executor, shown once; the one before is void. */
  rotateSecret(ctx: CallContext, idOrName: string): Promise<{ secret: string }> {
    return this.acts.admin.prepareAndWrite(
      ctx,
      'published.rotate-secret',
      { agent: idOrName },
      () => this.known(ctx, idOrName),
      async (tx, row) => {
        if (!hasSecret(row.executor))
          throw new RialtoError('unprocessable', { message: 'only http and mailbox executors have a secret' });
        const { secret, executorSecret } = this.newSecret(row, row.executor);
        await this.store.lock(tx, ctx.org.id);
        await this.store.update(tx, row.id, { executorSecret });
        this.tellChanged(tx, row);
        return { secret };
      },
    );
  }

  /** Under the lock of the org. */
  async insert(tx: Tx, org: OrgRef, source: PublishedSource, { definition, apiKey }: Wanted): Promise<Written> {
    const place = { id: newId<AgentId>(), orgId: org.id };
    const { secret, executorSecret } = this.secretFor(place, { definition, apiKey });
    const address = this.secrets.sealAddress(place, definition.executor);
    const row = await this.store.insert(tx, { ...place, ...definition, ...address, source, executorSecret });
    this.tellChanged(tx, row);
    return { row, secret };
  }

  /** Under the lock of the org; an archived one is back. */
  async update(tx: Tx, before: PublishedAgentEntity, { definition, apiKey }: Wanted): Promise<Written> {
    const { secret, executorSecret } = this.secretFor(before, { definition, apiKey }, before);
    const address = this.secrets.sealAddress(before, definition.executor);
    const change = { ...definition, ...address, executorSecret, archivedAt: null };
    const row = await this.store.update(tx, before.id, change);
    this.tellChanged(tx, row);
    return { row, secret };
  }

  /** False when it was gone already. */
  async archiveRow(tx: Tx, row: PublishedAgentEntity): Promise<boolean> {
    const archived = await this.store.archive(tx, row.id);
    if (archived) this.tellChanged(tx, row);
    return archived;
  }

  private tellChanged(tx: Tx, { orgId, id }: Pick<PublishedAgentEntity, 'orgId' | 'id'>): void {
    this.acts.tellPublished(tx, { orgId, id });
  }

  /** An executor keeps the secret it has; one of another kind gets its own, if its kind has any. */
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

  /** A key is for the origin that it was given for. Throws `unprocessable` for a new one without a word of its key. */
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
      message: 'executor.apiKey: the key that is known was given for another address',
      hint: 'give the key of this address, or null for none',
      violations: [{ field: 'executor.apiKey', description: 'is required with another address' }],
    });
  }

  /** Whether a declaration changes nothing. */
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

  /** For http in the form of Standard Webhooks, 32 bytes in base64; for a mailbox with the id of its agent, so that it is found by it. */
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

  /** What a file or a folder declares would be put back at the next look. */
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
