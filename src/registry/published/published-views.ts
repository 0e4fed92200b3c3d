import { Injectable } from '@nestjs/common';
import type { OrgRef } from '../../kernel/call-context.js';
import { withoutQuery } from '../../platform/secrets/url-queries.js';
import type { PublishedAgentEntity } from './published-agent.entity.js';
import { PublishedCards } from './published-cards.js';
import { PublishedLoader } from './published-loader.js';
import type { ExecutorConfig, PublishedAgent } from '../published.types.js';
import type { PublishedView } from './publishing.types.js';

/** Returns published agents as the API shows them. */
@Injectable()
export class PublishedViews {
  constructor(
    private readonly loader: PublishedLoader,
    private readonly cards: PublishedCards,
  ) {}

  async viewRow(row: PublishedAgentEntity, org: OrgRef): Promise<PublishedView> {
    const [agent] = await this.loader.agentsOf([row], org);
    return this.view(row, agent!);
  }

  /** Returns the views by agent id. */
  async viewRows(rows: readonly PublishedAgentEntity[], org: OrgRef): Promise<Map<string, PublishedView>> {
    const agents = await this.loader.agentsOf(rows, org);
    return new Map(rows.map((row, index) => [row.id, this.view(row, agents[index]!)]));
  }

  private view(row: PublishedAgentEntity, agent: PublishedAgent): PublishedView {
    return {
      id: row.id,
      orgId: row.orgId,
      name: row.name,
      handle: row.handle,
      description: row.description,
      executor: { ...row.executor, ...shownUrl(row.executor) },
      a2a_enabled: row.enabled,
      a2a_accept_cleartext: agent.acceptCleartext,
      publishToCard: row.publishToCard,
      skills: agent.skills.map((skill) => ({ ...skill })),
      streaming: agent.streaming,
      pushNotifications: agent.pushNotifications,
      extendedCard: agent.extendedCard,
      defaultInputModes: [...agent.inputModes],
      defaultOutputModes: [...agent.outputModes],
      version: agent.version,
      provider: agent.provider ?? null,
      documentationUrl: agent.documentationUrl ?? null,
      iconUrl: agent.iconUrl ?? null,
      extensions: agent.extensions.map((extension) => ({ ...extension })),
      protocolVersions: [...agent.versions],
      history: row.history,
      source: row.source,
      urls: this.cards.urlsOf({ name: row.name, handle: row.handle, org: agent.org }),
      createdAt: row.createdAt.toISOString(),
      updatedAt: row.updatedAt.toISOString(),
    };
  }
}

/** Returns the URL without its query, because a query may hold a credential. */
function shownUrl(executor: ExecutorConfig): { url?: string } {
  return 'url' in executor ? { url: withoutQuery(executor.url) } : {};
}
