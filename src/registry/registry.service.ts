import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { newId, type AgentId, type OrgId } from '../kernel/ids.js';
import type { VerbCall } from '../kernel/verb-bus.js';
import { slugOf } from '../protocol/mcp/tool-names.js';
import { OnNotice } from '../platform/bus/on-notice.decorator.js';
import { isUniqueViolation } from '../platform/database/pg.js';
import { SnapshotCache } from '../platform/database/snapshot-cache.js';
import type { Tx } from '../platform/database/tx.js';
import { Cursors, pageOf, type Page } from '../platform/http/cursor.js';
import { AgentCredentials } from './agent-credentials.js';
import type { AgentEntity } from './agents/agent.entity.js';
import { AgentStore, keptChanges, secondsFromNow } from './agents/agent.store.js';
import { understand, viewOf } from './agents/agent-view.js';
import { baseUrlOf } from './refresh/card-fetcher.js';
import { CardLooks, type CardLook } from './refresh/card-looks.js';
import { CardRefresher } from './refresh/card-refresher.js';
import { RegistryActs } from './published/registry-acts.js';
import type {
  AgentQuery,
  AgentView,
  ApproveCard,
  CardChangeView,
  ChangeAgent,
  RegisterAgent,
  RegisteredAgent,
} from './registry.types.js';

/** All registered agents of an org with parsed cards, cached for code that reads them on every request. */
export interface AgentSnapshot {
  readonly version: string;
  readonly agents: readonly RegisteredAgent[];
  readonly bySlug: ReadonlyMap<string, RegisteredAgent>;
  readonly byId: ReadonlyMap<string, RegisteredAgent>;
}

/** Registers and administers agents of other systems. */
@Injectable()
export class RegistryService {
  private readonly snapshots = new SnapshotCache<AgentSnapshot>({
    probe: (org) => this.store.version(org),
    load: async (org, version) => snapshotOf(version, await this.store.findAll(org as OrgId)),
  });

  constructor(
    private readonly store: AgentStore,
    private readonly looks: CardLooks,
    private readonly refresher: CardRefresher,
    private readonly credentials: AgentCredentials,
    private readonly acts: RegistryActs,
    private readonly cursors: Cursors,
  ) {}

  /**
   * Registers an agent. Throws `url_not_allowed`, `card_invalid`, `slug_taken`, `conflict` (same URL) or
   * `unprocessable` (too many agents).
   */
  async register(ctx: CallContext, input: RegisterAgent): Promise<AgentView> {
    const url = baseUrlOf(input.url);
    const find = () => this.looks.checkNew(input.url, input.credential, ctx.signal);
    const facts = { url, trustLevel: input.trustLevel };
    return this.view(
      await this.acts.admin.prepareAndWrite(ctx, 'agent.register', facts, find, (tx, found) =>
        this.insert(tx, ctx.org.id, url, input, found, 'api'),
      ),
    );
  }

  /** Creates the row of a declared agent, reachable or not. A later refresh fetches its card. */
  async declare(tx: Tx, org: OrgId, input: RegisterAgent): Promise<void> {
    const url = baseUrlOf(input.url);
    const slug = input.slug ?? slugOf(new URL(url).host);
    await this.insert(tx, org, url, { ...input, slug }, undefined, 'config');
  }

  list(ctx: CallContext, query: AgentQuery): Promise<Page<AgentView>> {
    return this.acts.admin.read(ctx, 'agent.list', async () => {
      const scope = `agents:${ctx.org.id}`;
      const [after] = query.cursor ? this.cursors.decode(scope, query.cursor, 1) : [];
      const rows = await this.store.findPage(ctx.org.id, query, after);
      const page = pageOf(
        rows,
        query.limit,
        (row) => row,
        (row) => this.cursors.encode(scope, [row.slug]),
      );
      const shown = await Promise.all(page.items.map((row) => this.mayDiscover(ctx, row.slug)));
      return {
        ...page,
        items: await Promise.all(page.items.filter((_, index) => shown[index]).map((row) => this.view(row))),
      };
    });
  }

  get(ctx: CallContext, idOrSlug: string): Promise<AgentView> {
    return this.acts.admin.read(ctx, 'agent.get', async () => this.view(await this.visible(ctx, idOrSlug)));
  }

  /** Returns the card, byte for byte as the agent sent it. */
  card(ctx: CallContext, idOrSlug: string): Promise<string> {
    return this.acts.admin.read(ctx, 'agent.card', async () => {
      const { card } = await this.visible(ctx, idOrSlug);
      if (card === null) throw new RialtoError('not_found', { message: 'the card of this agent was not fetched yet' });
      return card;
    });
  }

  changes(ctx: CallContext, idOrSlug: string): Promise<Page<CardChangeView>> {
    return this.acts.admin.read(ctx, 'agent.changes', async () => {
      const rows = await this.store.findChanges((await this.visible(ctx, idOrSlug)).id, keptChanges);
      return {
        items: rows.map((row) => ({ detectedAt: row.detectedAt.toISOString(), changes: row.changes })),
        nextCursor: null,
      };
    });
  }

  async change(ctx: CallContext, idOrSlug: string, input: ChangeAgent): Promise<AgentView> {
    const facts = { agent: idOrSlug, fields: Object.keys(input) };
    const changed = await this.acts.admin.prepareAndWrite(
      ctx,
      'agent.change',
      facts,
      () => this.visible(ctx, idOrSlug),
      async (tx, row) => {
        const { credential, ...plain } = input;
        const sealed = credential === undefined ? {} : this.credentials.seal(row, credential);
        const stored = await this.store.update(tx, row.id, { ...plain, ...sealed }, true);
        if (!stored) throw noSuchAgent();
        this.acts.tellChanged(tx, stored);
        return stored;
      },
    );
    return this.view(changed);
  }

  /**
   * Ends the quarantine of an agent. Throws `conflict` when its card is not the reviewed one, `unprocessable` when
   * its signature forbids it.
   */
  async approve(ctx: CallContext, idOrSlug: string, { cardHash }: ApproveCard): Promise<AgentView> {
    const facts = { agent: idOrSlug, cardHash };
    const approved = await this.acts.admin.prepareAndWrite(
      ctx,
      'agent.approve',
      facts,
      () => this.visible(ctx, idOrSlug),
      (tx, { id }) => this.refresher.approve(tx, id, cardHash),
    );
    return this.view(approved);
  }

  remove(ctx: CallContext, idOrSlug: string): Promise<void> {
    return this.acts.admin.prepareAndWrite(
      ctx,
      'agent.delete',
      { agent: idOrSlug },
      () => this.visible(ctx, idOrSlug),
      async (tx, row) => {
        if (!(await this.store.delete(tx, row.id))) throw noSuchAgent();
        this.acts.tellChanged(tx, row);
      },
    );
  }

  /** Fetches the card now. A changed card is stored; a failure sets the health of the agent (RE-59). */
  async refetch(ctx: CallContext, idOrSlug: string): Promise<AgentView> {
    const refresh = async () => this.refresher.attempt(await this.visible(ctx, idOrSlug), ctx.signal);
    return this.view(
      await this.acts.admin.prepareAndWrite(ctx, 'agent.refetch', { agent: idOrSlug }, refresh, (tx, attempt) =>
        this.refresher.store(tx, attempt, true),
      ),
    );
  }

  snapshot(org: string): Promise<AgentSnapshot> {
    return this.snapshots.get(org);
  }

  /** Returns the snapshot without a promise when it is fresh, else undefined. */
  peekSnapshot(org: string): AgentSnapshot | undefined {
    return this.snapshots.peek(org);
  }

  mayDiscover(ctx: CallContext, slug: string): Promise<boolean> {
    return this.acts.verbs.permits(discovery(ctx, slug));
  }

  @OnNotice('agent.card-changed')
  forget({ orgId }: { orgId: string }): void {
    this.snapshots.expire(orgId);
  }

  private async visible(ctx: CallContext, idOrSlug: string): Promise<AgentEntity> {
    const row = await this.store.find(ctx.org.id, idOrSlug);
    if (!row || !(await this.mayDiscover(ctx, row.slug))) throw noSuchAgent();
    return row;
  }

  private async insert(
    tx: Tx,
    org: OrgId,
    url: string,
    input: RegisterAgent,
    look: CardLook | undefined,
    source: string,
  ): Promise<AgentEntity> {
    const name = look?.found?.card.name ?? input.slug!;
    const id = newId<AgentId>();
    const now = new Date(systemClock.now());
    const row = {
      id,
      orgId: org,
      url,
      name,
      source,
      slug: input.slug ?? slugOf(name),
      trustLevel: input.trustLevel,
      timeoutMs: input.timeoutMs ?? null,
      ...this.credentials.seal({ id, orgId: org }, input.credential ?? null),
      ...this.credentials.sealAddress({ id, orgId: org }, look?.found?.cardUrl ?? input.url),
      ...(look
        ? this.refresher.fresh(look)
        : {
            card: null,
            cardHash: null,
            etag: null,
            signature: null,
            pinnedKey: null,
            skillsSince: {},
            health: 'unknown' as const,
            failures: 0,
            lastError: null,
            quarantinedAt: null,
            lastFetchedAt: null,
            lastSeenAt: null,
            nextRefreshAt: secondsFromNow(0),
          }),
      createdAt: now,
      updatedAt: now,
    };
    try {
      await this.store.insert(tx, row);
    } catch (error) {
      if (isUniqueViolation(error, 'uq_agent_cards_url'))
        throw new RialtoError('conflict', { message: 'an agent with this URL is already registered', data: { url } });
      if (isUniqueViolation(error, 'uq_agent_cards_slug')) {
        throw new RialtoError('slug_taken', {
          message: `another agent of this org already has the slug "${row.slug}"`,
          hint: 'set another "slug" in the registration',
          data: { slug: row.slug },
        });
      }
      throw error;
    }
    this.acts.tellChanged(tx, row);
    return row as unknown as AgentEntity;
  }

  private async view(row: AgentEntity): Promise<AgentView> {
    const agent = (await this.snapshot(row.orgId)).byId.get(row.id) ?? understand([row])[0]!;
    return viewOf({ ...agent, row });
  }
}

function noSuchAgent(): RialtoError {
  return new RialtoError('not_found', { message: 'no such agent' });
}

/** Returns the verb call that decides whether the caller sees an agent in a list. */
function discovery(ctx: CallContext, slug: string): VerbCall {
  return { ctx, verb: slug, action: 'a2a_discover', resource: { type: 'A2AAgent', id: slug } };
}

function snapshotOf(version: string, rows: AgentEntity[]): AgentSnapshot {
  const agents = understand(rows);
  return {
    version,
    agents,
    bySlug: new Map(agents.map((agent) => [agent.row.slug, agent])),
    byId: new Map(agents.map((agent) => [agent.row.id, agent])),
  };
}
