import { Injectable } from '@nestjs/common';
import type { AgentId, OrgId } from '../kernel/ids.js';
import { UrlQueries } from '../platform/secrets/url-queries.js';
import { Vault, type Secret } from '../platform/secrets/vault.js';
import { SnapshotCache } from '../platform/database/snapshot-cache.js';
import type { PublishedAgentEntity } from './published/published-agent.entity.js';
import { PublishedAgentStore, type SealedExecutor } from './published/published-agent.store.js';
import type { ExecutorConfig } from './published.types.js';

interface Owner {
  readonly id: AgentId;
  readonly orgId: OrgId;
}

type Address = Pick<PublishedAgentEntity, 'executor' | 'executorQuery'>;

/** Secrets and URL that a call to an executor needs. */
export interface ExecutorAccess {
  /** Signs the calls of an `http` executor (`whsec_…`), opens a `mailbox` (`mbx_…`), or is the key of a model. */
  readonly secret?: Secret;
  /** The whole URL of an `http` or `llm` executor. */
  readonly url?: string;
}

/**
 * Seals and opens the secrets of executors, and the queries of their URLs, which may hold a secret. Both are stored
 * in the rows of the agents.
 */
@Injectable()
export class ExecutorSecrets {
  private readonly queries: UrlQueries;
  private readonly recent = new SnapshotCache<ExecutorAccess>({
    probe: async (id) => JSON.stringify((await this.store.executorOf(id as AgentId)) ?? null),
    load: (id, row) => Promise.resolve(this.open(id as AgentId, JSON.parse(row) as SealedExecutor | null)),
  });

  constructor(
    private readonly store: PublishedAgentStore,
    private readonly vault: Vault,
  ) {
    this.queries = new UrlQueries(vault);
  }

  /** Opens the secrets for one call. Returns an empty object for an unknown agent. */
  async secretsOf(id: AgentId): Promise<ExecutorAccess> {
    return this.open(id, await this.store.executorOf(id));
  }

  private open(id: AgentId, found: SealedExecutor | null | undefined): ExecutorAccess {
    if (!found) return {};
    const { orgId, secret, url, query } = found;
    return {
      ...(secret !== null && { secret: this.openSecret({ id, orgId }, secret) }),
      ...(url !== null && { url: this.wholeUrl({ id, orgId }, url, query) }),
    };
  }

  /** Does the same without a statement for each call; a secret that was replaced less than a second ago may be old. */
  recentSecretsOf(id: AgentId): Promise<ExecutorAccess> {
    return this.recent.get(id);
  }

  openSecret(owner: Owner, sealed: string): Secret {
    return this.vault.open(sealed, secretPlace(owner));
  }

  sealSecret(owner: Owner, secret: string): string {
    return this.vault.seal(secret, secretPlace(owner));
  }

  /** Returns an executor as its row stores it: the URL without its query, and the sealed query. */
  sealAddress(owner: Owner, executor: ExecutorConfig): Address {
    const { config, query } = this.withoutQuery(executor);
    return { executor: config, executorQuery: query === undefined ? null : this.vault.seal(query, queryOf(owner)) };
  }

  /** Returns an executor with its whole URL. */
  openAddress(row: Owner & Address): ExecutorConfig {
    const { executor, executorQuery } = row;
    return 'url' in executor ? { ...executor, url: this.wholeUrl(row, executor.url, executorQuery) } : executor;
  }

  /** Returns an executor with a marker in place of the query of its URL. Equal queries give equal markers. */
  withoutQuery(executor: ExecutorConfig): { config: ExecutorConfig; query?: string } {
    if (!('url' in executor)) return { config: executor };
    const { url, query } = this.queries.hide(executor.url);
    return { config: { ...executor, url }, query };
  }

  private wholeUrl(owner: Owner, url: string, sealed: string | null): string {
    return sealed === null ? url : UrlQueries.whole({ url, query: this.vault.open(sealed, queryOf(owner)).reveal() });
  }
}

function secretPlace({ id, orgId }: Owner) {
  return { table: 'published_agents', row: id, org: orgId };
}

function queryOf(owner: Owner) {
  return { ...secretPlace(owner), table: 'published_agents.executor_query' };
}
