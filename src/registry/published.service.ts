import { Inject, Injectable } from '@nestjs/common';
import type { OrgRef } from '../kernel/call-context.js';
import type { AgentId, OrgId } from '../kernel/ids.js';
import type { Notice } from '../kernel/notices.js';
import { OnNotice } from '../platform/bus/on-notice.decorator.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { SnapshotCache } from '../platform/database/snapshot-cache.js';
import { PublicUrl } from '../platform/http/public-url.js';
import { defaultOrg } from '../policy/auth.service.js';
import { OrgDirectory } from '../policy/org-directory.js';
import type { BuiltCard } from './cards/card-cache.js';
import { PublishedAgentStore } from './published/published-agent.store.js';
import { PublishedCards, type CardWish } from './published/published-cards.js';
import { PublishedLoader } from './published/published-loader.js';
import { byWord, calledOf, type Called } from './published/published-names.js';
import type { PublishedAgent } from './published.types.js';

export type { BuiltCard } from './cards/card-cache.js';
export type { CardWish } from './published/published-cards.js';

/** All agents of our own of an org, for everyone who reads them on every request. */
export interface PublishedSnapshot {
  readonly version: string;
  /** In order of name; those that are not enabled too. */
  readonly agents: readonly PublishedAgent[];
  readonly byId: ReadonlyMap<string, PublishedAgent>;
  /** Enabled ones alone, by name and by handle. */
  readonly byWord: ReadonlyMap<string, PublishedAgent>;
}

/** Agents of our own, as doors and tasks read them. */
@Injectable()
export class PublishedService {
  private readonly snapshots = new SnapshotCache<PublishedSnapshot>({
    probe: (org) => this.loader.version(org),
    load: (org, version) => this.load(org as OrgId, version),
  });
  /** Whose an agent is never changes. */
  private readonly orgOf = new Map<AgentId, OrgId>();

  private readonly indexes = new WeakMap<PublishedSnapshot, Buffer>();

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly store: PublishedAgentStore,
    private readonly loader: PublishedLoader,
    private readonly orgs: OrgDirectory,
    private readonly cards: PublishedCards,
    private readonly publicUrl: PublicUrl,
  ) {}

  snapshot(org: OrgId): Promise<PublishedSnapshot> {
    return this.snapshots.get(org);
  }

  /**
   * The enabled agent that a name or a handle means: in the given org, else in `default`; `x@y` in the org whose slug or domain
   * `y` is, or where `y` is the host of this gateway as a bare `x` (RI-09). Without a promise while everything is fresh, for hot doors.
   */
  resolve(name: string, org?: OrgRef): PublishedAgent | undefined | Promise<PublishedAgent | undefined> {
    const called = calledOf(name);
    if (!called) return undefined;
    const known = this.peek(called, org);
    return known === undefined ? this.find(called, org) : (known ?? undefined);
  }

  /** An agent that was not archived, enabled or not: what it began goes on. */
  byId(id: AgentId): PublishedAgent | undefined | Promise<PublishedAgent | undefined> {
    const org = this.orgOf.get(id);
    const fresh = org && this.snapshots.peek(org);
    return fresh ? fresh.byId.get(id) : this.findById(id);
  }

  /** The agent that answers when a caller names none: the conformance agent while there is one, else the one of the org, else that of the configuration file. */
  async defaultAgent(org?: OrgRef): Promise<PublishedAgent | undefined> {
    const entry = await this.orgs.find(org?.slug ?? defaultOrg);
    if (!entry) return undefined;
    const { agents, byWord: words } = await this.snapshot(entry.id);
    const conformance =
      entry.slug === defaultOrg && this.settings.RIALTO_CONFORMANCE_AGENT
        ? agents.find(({ executor, enabled }) => enabled && executor.kind === 'conformance')
        : undefined;
    const declared = entry.slug === defaultOrg ? this.settings.configFile.defaultAgent : undefined;
    const chosen = entry.defaultAgent ?? declared;
    return conformance ?? (chosen === undefined ? undefined : words.get(chosen));
  }

  /** The static bearer that opens the doors of this agent alone: `apiKeyEnv` of its declaration (AN-95, AN-96). */
  staticBearerOf({ source, name }: Pick<PublishedAgent, 'source' | 'name'>): string | undefined {
    return source === 'config'
      ? this.settings.configFile.published.find((one) => one.name === name)?.apiKey
      : undefined;
  }

  /** The card of an agent, signed. */
  async cardFor(agent: PublishedAgent, wish: CardWish): Promise<BuiltCard> {
    const [standard, isVerified] = await Promise.all([this.defaultAgent(agent.org), this.isVerified(agent)]);
    const hasStaticBearer = this.staticBearerOf(agent) !== undefined;
    return this.cards.cardFor(agent, wish, { hasStaticBearer, isDefault: standard?.id === agent.id, isVerified });
  }

  /** The card of the deployment while an agent is the default one: its own, and beside its skills those of `toolAgents`. */
  async serviceCard(agent: PublishedAgent, wish: CardWish): Promise<BuiltCard> {
    const tools = (await this.toolAgents(agent.org)).filter(({ id }) => id !== agent.id);
    if (tools.length === 0) return this.cardFor(agent, wish);
    const { version } = await this.snapshot(agent.org.id);
    const hasStaticBearer = this.staticBearerOf(agent) !== undefined;
    const standing = { hasStaticBearer, isDefault: true, isVerified: await this.isVerified(agent) };
    return this.cards.serviceCard(agent, tools, wish, { key: version, ...standing });
  }

  /** The agents of the servers in `mcp.config.json`: their tools are skills of the deployment (AN-97), whichever agent is its default one. */
  async toolAgents({ id, slug }: OrgRef): Promise<PublishedAgent[]> {
    const servers = this.settings.configFile.mcpServers.filter(({ isAgent }) => isAgent);
    if (slug !== defaultOrg || servers.length === 0) return [];
    const names = new Set(servers.map((server) => server.id));
    const { agents } = await this.snapshot(id);
    return agents.filter(
      ({ name, enabled, source, executor, publishToCard }) =>
        enabled && publishToCard && source === 'config' && executor.kind === 'mcp-tool' && names.has(name),
    );
  }

  /** The card of the deployment while no agent is the default one: the public skills of the default org, perhaps none. */
  async gatewayCard(version?: string): Promise<BuiltCard> {
    const org = await this.orgs.find(defaultOrg);
    const { agents, key } = await this.onCard(org?.id);
    const about = { key: `gateway|${key}`, name: 'Rialto', description: 'An agent gateway.' };
    return this.cards.sharedCard(about, agents, version);
  }

  /** One card with the public skills of all agents of an org that have `publishToCard`; undefined when there is none (RE-78). */
  async orgCard(slug: string, version?: string): Promise<BuiltCard | undefined> {
    const org = await this.orgs.find(slug);
    const { agents, key } = await this.onCard(org?.id);
    if (!org || agents.length === 0) return undefined;
    const about = { key: `org|${org.name}|${key}`, name: org.name, description: `The agents of ${org.name}.` };
    return this.cards.sharedCard(about, agents, version);
  }

  /** The enabled agents of an org, of `default` when none is given, in the words of Reyn (RY-07); bytes made once. */
  async index(org?: OrgRef): Promise<Buffer> {
    const home = org ?? (await this.orgs.find(defaultOrg));
    const snapshot = home && (await this.snapshot(home.id));
    if (!snapshot) return this.cards.index([]);
    const known = this.indexes.get(snapshot) ?? this.cards.index(snapshot.agents.filter(({ enabled }) => enabled));
    this.indexes.set(snapshot, known);
    return known;
  }

  @OnNotice('published.changed')
  forget({ orgId }: Notice<'published.changed'>): void {
    this.snapshots.expire(orgId);
  }

  /** The skills of some agents are the tools of an MCP server. */
  @OnNotice('upstream.changed')
  serverChanged({ orgId }: Notice<'upstream.changed'>): void {
    this.snapshots.expire(orgId);
  }

  private peek({ word, host, whole }: Called, org?: OrgRef): PublishedAgent | null | undefined {
    const named = host === undefined ? null : this.orgs.peek(host);
    if (named === undefined) return undefined;
    const home = named ?? org ?? this.orgs.peek(defaultOrg);
    const fresh = home && this.snapshots.peek(home.id);
    return fresh && (this.named(fresh, { word, host, whole }, named) ?? null);
  }

  private async find({ word, host, whole }: Called, org?: OrgRef): Promise<PublishedAgent | undefined> {
    const named = host === undefined ? undefined : await this.orgs.find(host);
    const home = named ?? org ?? (await this.orgs.find(defaultOrg));
    const snapshot = home && (await this.snapshot(home.id));
    return snapshot && this.named(snapshot, { word, host, whole }, named);
  }

  /** An agent of the named org may also be called by a handle that holds the host. */
  private named(
    { byWord: words }: PublishedSnapshot,
    { word, host, whole }: Called,
    org: OrgRef | null | undefined,
  ): PublishedAgent | undefined {
    if (org) return words.get(whole) ?? words.get(word);
    return words.get(this.isHere(host) ? word : whole);
  }

  /** Whether the handle that the card states leads to this agent: the domains of orgs are set by admins of the deployment. */
  private async isVerified({ handle, org }: PublishedAgent): Promise<boolean> {
    const { host } = (handle !== undefined && calledOf(handle)) || {};
    return host === undefined || (await this.orgs.find(host))?.id === org.id;
  }

  private isHere(host: string | undefined): boolean {
    return host === undefined || this.publicUrl.hosts.includes(host);
  }

  private async findById(id: AgentId): Promise<PublishedAgent | undefined> {
    const org = this.orgOf.get(id) ?? (await this.store.orgOf(id));
    return org && (await this.snapshot(org)).byId.get(id);
  }

  private async onCard(org: OrgId | undefined): Promise<{ agents: PublishedAgent[]; key: string }> {
    const snapshot = org && (await this.snapshot(org));
    const agents = snapshot?.agents.filter(({ enabled, publishToCard }) => enabled && publishToCard) ?? [];
    return { agents, key: `${org}|${snapshot?.version}` };
  }

  private async load(id: OrgId, version: string): Promise<PublishedSnapshot> {
    const agents = await this.loader.load(id);
    for (const agent of agents) this.orgOf.set(agent.id, id);
    return {
      version,
      agents,
      byId: new Map(agents.map((agent) => [agent.id, agent])),
      byWord: byWord(agents.filter(({ enabled }) => enabled)),
    };
  }
}
