import { Inject, Injectable } from '@nestjs/common';
import type { OrgRef } from '../kernel/call-context.js';
import type { AgentId, OrgId } from '../kernel/ids.js';
import type { Notice } from '../kernel/notices.js';
import { trustTierOf } from '../kernel/trust.js';
import { OnNotice } from '../platform/bus/on-notice.decorator.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { SnapshotCache } from '../platform/database/snapshot-cache.js';
import { PublicUrl } from '../platform/http/public-url.js';
import { defaultOrg } from '../policy/auth.service.js';
import { OrgDirectory } from '../policy/org-directory.js';
import type { BuiltCard } from './cards/card-cache.js';
import { PublishedCards, type CardWish, type DoorUrls, type Standing } from './published/published-cards.js';
import { PublishedLoader, type PublishedRows } from './published/published-loader.js';
import { byWord, calledOf, type Called } from './published/published-names.js';
import type { PublishedAgent } from './published.types.js';

export type { BuiltCard } from './cards/card-cache.js';
export type { CardWish } from './published/published-cards.js';

/** All published agents of an org, cached for code that reads them on every request. */
export interface PublishedSnapshot {
  readonly version: string;
  /** Sorted by name; disabled agents are included. */
  readonly agents: readonly PublishedAgent[];
  readonly byId: ReadonlyMap<string, PublishedAgent>;
  /** Only enabled agents, by name and by handle. */
  readonly byWord: ReadonlyMap<string, PublishedAgent>;
  /** The rows that the agents were made of. */
  readonly rows: PublishedRows;
}

/** Reads published agents for doors and tasks. */
@Injectable()
export class PublishedService {
  private readonly snapshots = new SnapshotCache<PublishedSnapshot>({
    probe: (org) => this.loader.version(org),
    load: (org, version, previous) => this.load(org as OrgId, version, previous),
  });
  /** The org of the agent with a handle that names a host; one agent of the deployment has it. */
  private readonly handleOwners = new SnapshotCache<OrgRef | null>({
    probe: (handle) => this.loader.ownerOf(handle),
    load: (_handle, text) => Promise.resolve(JSON.parse(text) as OrgRef | null),
  });
  private readonly indexes = new WeakMap<PublishedSnapshot, string>();

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly loader: PublishedLoader,
    private readonly orgs: OrgDirectory,
    private readonly cards: PublishedCards,
    private readonly publicUrl: PublicUrl,
  ) {}

  snapshot(org: OrgId): Promise<PublishedSnapshot> {
    return this.snapshots.get(org);
  }

  /**
   * Returns the enabled agent with a name or a handle. It searches the given org, else `default`. For `x@y` it
   * searches the org with the slug or domain `y`; when `y` is the host of this gateway, `x@y` means `x` (RI-09). Any
   * other `x@y` is the handle of one agent in the whole deployment. It returns no promise while all caches are fresh,
   * because doors call it on every request.
   */
  resolve(name: string, org?: OrgRef): PublishedAgent | undefined | Promise<PublishedAgent | undefined> {
    const called = calledOf(name);
    if (!called) return undefined;
    const known = this.peekCalled(called, org);
    return known === undefined ? this.findCalled(called, org) : (known ?? undefined);
  }

  /** Returns an agent that is not archived, also a disabled one: its running tasks continue. */
  byId(id: AgentId): PublishedAgent | undefined | Promise<PublishedAgent | undefined> {
    const org = this.loader.orgs.get(id);
    const fresh = org && this.snapshots.peek(org);
    return fresh ? fresh.byId.get(id) : this.findById(id);
  }

  /**
   * Returns the agent for callers that name none: the conformance agent while it is enabled, else the default agent
   * of the org, else the one of the configuration file.
   */
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

  /**
   * Returns the static bearer that opens only the doors of this agent: `apiKeyEnv` of its declaration (AN-95, AN-96).
   */
  staticBearerOf({ source, name }: Pick<PublishedAgent, 'source' | 'name'>): string | undefined {
    return source === 'config'
      ? this.settings.configFile.published.find((one) => one.name === name)?.apiKey
      : undefined;
  }

  /** Returns the addresses of an agent. */
  urlsOf(agent: PublishedAgent): DoorUrls {
    return this.cards.urlsOf(agent);
  }

  /** Returns the signed card of an agent. */
  async cardFor(agent: PublishedAgent, wish: CardWish): Promise<BuiltCard> {
    const [standard, standing] = await Promise.all([this.defaultAgent(agent.org), this.standingOf(agent)]);
    return this.cards.cardFor(agent, wish, { ...standing, isDefault: standard?.id === agent.id });
  }

  /**
   * Returns the card of the deployment while it has a default agent: the card of that agent, with the skills of
   * `toolAgents` added.
   */
  async serviceCard(agent: PublishedAgent, wish: CardWish): Promise<BuiltCard> {
    const tools = (await this.toolAgents(agent.org)).filter(({ id }) => id !== agent.id);
    if (tools.length === 0) return this.cardFor(agent, wish);
    const { version } = await this.snapshot(agent.org.id);
    const standing = await this.standingOf(agent);
    return this.cards.serviceCard(agent, tools, wish, { key: version, ...standing, isDefault: true });
  }

  /**
   * Returns the agents of the servers in `mcp.config.json`. Their tools are skills of the deployment with any default
   * agent (AN-97).
   */
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

  /** Returns the agents with `publishToCard`: the shared cards of the org have their public skills. */
  async listedAgents(org: OrgId): Promise<PublishedAgent[]> {
    return (await this.onCard(org)).agents;
  }

  /**
   * Returns the card of the deployment while it has no default agent: the public skills of the default org, which may
   * be none.
   */
  async gatewayCard(version?: string): Promise<BuiltCard> {
    const org = await this.orgs.find(defaultOrg);
    const { agents, key } = await this.onCard(org?.id);
    const about = { key: `gateway|${key}`, name: 'Rialto', description: 'An agent gateway.' };
    return this.cards.sharedCard(about, agents, version);
  }

  /**
   * Returns one card with the public skills of all agents of an org that have `publishToCard`; undefined when there
   * are none (RE-78).
   */
  async orgCard(slug: string, version?: string): Promise<BuiltCard | undefined> {
    const org = await this.orgs.find(slug);
    const { agents, key } = await this.onCard(org?.id);
    if (!org || agents.length === 0) return undefined;
    const about = { key: `org|${org.name}|${key}`, name: org.name, description: `The agents of ${org.name}.` };
    return this.cards.sharedCard(about, agents, version);
  }

  /**
   * Returns the index of the enabled agents of an org (`default` when none is given), in the format of Reyn (RY-07).
   * The bytes are cached.
   */
  async index(org?: OrgRef): Promise<string> {
    const home = org ?? (await this.orgs.find(defaultOrg));
    const snapshot = home && (await this.snapshot(home.id));
    if (!snapshot) return this.cards.index([]);
    const known = this.indexes.get(snapshot) ?? this.cards.index(snapshot.agents.filter(({ enabled }) => enabled));
    this.indexes.set(snapshot, known);
    return known;
  }

  /** Returns the address of the public keys of an agent. */
  keysUrlOf(agent: PublishedAgent): string {
    return this.cards.urlsOf(agent).keys;
  }

  @OnNotice('published.changed')
  expireSnapshot({ orgId }: Notice<'published.changed'>): void {
    this.snapshots.expire(orgId);
    this.handleOwners.expireAll();
  }

  /** Expires the snapshot, because skills of some agents are the tools of an MCP server. */
  @OnNotice('upstream.changed')
  serverChanged({ orgId }: Notice<'upstream.changed'>): void {
    this.snapshots.expire(orgId);
  }

  private peekCalled(called: Called, org?: OrgRef): PublishedAgent | null | undefined {
    const { host, whole } = called;
    const named = host === undefined ? null : this.orgs.peek(host);
    if (named === undefined) return undefined;
    const owner = named ?? (this.isHere(host) ? null : this.handleOwners.peek(whole));
    if (owner === undefined) return undefined;
    const home = owner ?? org ?? this.orgs.peek(defaultOrg);
    const fresh = home && this.snapshots.peek(home.id);
    return fresh && (this.agentNamed(fresh, called, owner) ?? null);
  }

  private async findCalled(called: Called, org?: OrgRef): Promise<PublishedAgent | undefined> {
    const { host, whole } = called;
    const named = host === undefined ? undefined : await this.orgs.find(host);
    const owner = named ?? (this.isHere(host) ? undefined : await this.handleOwners.get(whole));
    const home = owner ?? org ?? (await this.orgs.find(defaultOrg));
    const snapshot = home && (await this.snapshot(home.id));
    return snapshot && this.agentNamed(snapshot, called, owner);
  }

  /** Finds an agent by its name or handle. An agent of a named org may also have a handle that includes the host. */
  private agentNamed(
    { byWord: words }: PublishedSnapshot,
    { word, host, whole }: Called,
    org: OrgRef | null | undefined,
  ): PublishedAgent | undefined {
    if (org) return words.get(whole) ?? words.get(`${word}@${host}`) ?? words.get(word);
    return words.get(this.isHere(host) ? word : whole);
  }

  /**
   * Returns whether the handle on the card leads to this agent. Only admins of the deployment set the domains of
   * orgs.
   */
  private async isVerified({ handle, org }: PublishedAgent): Promise<boolean> {
    const { host } = (handle !== undefined && calledOf(handle)) || {};
    return host === undefined || (await this.orgs.find(host))?.id === org.id;
  }

  private async standingOf(agent: PublishedAgent): Promise<Omit<Standing, 'isDefault'>> {
    const [isVerified, org = agent.org] = await Promise.all([this.isVerified(agent), this.orgs.find(agent.org.slug)]);
    return { hasStaticBearer: this.staticBearerOf(agent) !== undefined, isVerified, trustTier: trustTierOf(org) };
  }

  private isHere(host: string | undefined): boolean {
    return host === undefined || this.publicUrl.hosts.includes(host);
  }

  private async findById(id: AgentId): Promise<PublishedAgent | undefined> {
    const org = await this.loader.findOrg(id);
    return org && (await this.snapshot(org)).byId.get(id);
  }

  private async onCard(org: OrgId | undefined): Promise<{ agents: PublishedAgent[]; key: string }> {
    const snapshot = org && (await this.snapshot(org));
    const agents = snapshot?.agents.filter(({ enabled, publishToCard }) => enabled && publishToCard) ?? [];
    return { agents, key: `${org}|${snapshot?.version}` };
  }

  private async load(id: OrgId, version: string, previous?: PublishedSnapshot): Promise<PublishedSnapshot> {
    const { agents, rows } = await this.loader.load(id, previous?.rows);
    return {
      version,
      agents,
      rows,
      byId: new Map(agents.map((agent) => [agent.id, agent])),
      byWord: byWord(agents.filter(({ enabled }) => enabled)),
    };
  }
}
