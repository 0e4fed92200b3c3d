import { Inject, Injectable } from '@nestjs/common';
import type { OrgRef } from '../kernel/call-context.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import type { PublishedAgentEntity } from './published-agent.entity.js';
import { PublishedCards } from './published-cards.js';
import { agentOf } from './published-definition.js';
import type { PublishedView } from './publishing.types.js';

/** Agents of our own as the API shows them. */
@Injectable()
export class PublishedViews {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly cards: PublishedCards,
  ) {}

  of(row: PublishedAgentEntity, org: OrgRef): PublishedView {
    const agent = agentOf(row, org, this.settings.RIALTO_A2A_ACCEPT_CLEARTEXT);
    return {
      id: row.id,
      orgId: row.orgId,
      name: row.name,
      handle: row.handle,
      description: row.description,
      executor: row.executor,
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
      urls: this.cards.urlsOf({ name: row.name, handle: row.handle, org }),
      createdAt: row.createdAt.toISOString(),
      updatedAt: row.updatedAt.toISOString(),
    };
  }
}
