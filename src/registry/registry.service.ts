import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import type { AgentId, OrgId } from '../kernel/ids.js';
import { VerbBus } from '../kernel/verb-bus.js';
import { OnNotice } from '../platform/bus/on-notice.decorator.js';
import { inTurns } from '../platform/jobs/in-turns.js';
import { SnapshotCache } from '../platform/database/snapshot-cache.js';
import { AgentStore } from './agents/agent.store.js';
import { understand } from './agents/agent-view.js';
import type { RegisteredAgent } from './registry.types.js';

/** All registered agents of an org with parsed cards, cached for code that reads them on every request. */
export interface AgentSnapshot {
  readonly version: string;
  /** The stamp of each row, by the id of its agent. */
  readonly stamps: ReadonlyMap<string, string>;
  readonly agents: readonly RegisteredAgent[];
  readonly bySlug: ReadonlyMap<string, RegisteredAgent>;
  readonly byId: ReadonlyMap<string, RegisteredAgent>;
}

/** Reads registered agents for doors and tasks. */
@Injectable()
export class RegistryService {
  private readonly snapshots = new SnapshotCache<AgentSnapshot>({
    probe: (org) => this.store.version(org),
    load: (org, version, previous) => this.loadSnapshot(org as OrgId, version, previous),
  });

  constructor(
    private readonly store: AgentStore,
    private readonly verbs: VerbBus,
  ) {}

  snapshot(org: string): Promise<AgentSnapshot> {
    return this.snapshots.get(org);
  }

  /** Returns the snapshot without a promise when it is fresh, else undefined. */
  peekSnapshot(org: string): AgentSnapshot | undefined {
    return this.snapshots.peek(org);
  }

  /** Returns whether policies let the caller see an agent in a list. */
  mayDiscover(ctx: CallContext, slug: string): Promise<boolean> {
    return this.verbs.permits({ ctx, verb: slug, action: 'a2a_discover', resource: { type: 'A2AAgent', id: slug } });
  }

  @OnNotice('agent.card-changed')
  expireSnapshot({ orgId }: { orgId: string }): void {
    this.snapshots.expire(orgId);
  }

  /** Reads only the agents that changed since the previous snapshot. */
  private async loadSnapshot(org: OrgId, version: string, previous?: AgentSnapshot): Promise<AgentSnapshot> {
    const all = await this.store.stamps(org);
    const isKnown = ({ id, stamp }: { id: AgentId; stamp: string }) => previous?.stamps.get(id) === stamp;
    const changed = await this.store.findByIds(all.filter((one) => !isKnown(one)).map(({ id }) => id));
    const rows = new Map(changed.map((row) => [row.id, row]));
    const current = all.flatMap(({ id }) => rows.get(id) ?? previous?.byId.get(id)?.row ?? []);
    const agents = await inTurns(understand(current, previous?.byId));
    return snapshotOf(version, agents, new Map(all.map(({ id, stamp }) => [id, stamp])));
  }
}

function snapshotOf(
  version: string,
  agents: readonly RegisteredAgent[],
  stamps: ReadonlyMap<string, string>,
): AgentSnapshot {
  return {
    version,
    agents,
    stamps,
    bySlug: new Map(agents.map((agent) => [agent.row.slug, agent])),
    byId: new Map(agents.map((agent) => [agent.row.id, agent])),
  };
}
