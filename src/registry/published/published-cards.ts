import { Inject, Injectable } from '@nestjs/common';
import type { OrgRef } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { PublicUrl } from '../../platform/http/public-url.js';
import { etagOf } from '../../platform/http/validated-answer.js';
import type { Signer } from '../../platform/secrets/signing-keys.js';
import { VERSION } from '../../platform/telemetry/version.js';
import { defaultOrg } from '../../policy/auth.service.js';
import type { A2aVersion, AgentExtension } from '../../protocol/a2a/model.js';
import {
  encodeCard,
  formOf,
  isPublic,
  publishedCard,
  type CardFacts,
  type CardForm,
  type CardVariant,
  type Door,
  type PublishedSkill,
} from '../../protocol/a2a/card/published-card.js';
import { CardCache, type BuiltCard } from '../cards/card-cache.js';
import { securitySchemesOf } from '../cards/card-security.js';
import { CardSigner } from '../cards/card-signer.js';
import { calledFrom } from './published-names.js';
import { namedSkill, type PublishedAgent, type PublishedSource } from '../published.types.js';

/** Which of an agent's cards; `version` is the `A2A-Version` its reader sent, if it did. */
export interface CardWish {
  readonly variant: CardVariant;
  readonly version?: string;
}

/** What a card depends on beside its agent. */
export interface Standing {
  readonly hasStaticBearer: boolean;
  /** The default agent of its org. */
  readonly isDefault: boolean;
  /** Whether the host of its handle is the org itself or a domain of it. */
  readonly isVerified: boolean;
}

/** Where an agent is reached, for people. */
export interface DoorUrls {
  readonly jsonRpc: string;
  readonly rest: string;
  readonly card: string;
  readonly handleCard?: string;
  readonly grpc?: string;
}

interface Wanted extends CardWish {
  /** What the card is made of, in one text. */
  readonly key: string;
  readonly offered: readonly A2aVersion[];
  /** Absent: when it was built. */
  readonly lastModified?: Date;
  readonly facts: () => CardFacts;
}

/** What the gateway vouches for on the cards of its agents: an extension under its own name (RI-13). */
const identityUri = 'urn:rialto:identity:v1';
/** 3: declared by whoever runs the deployment; 2: by an admin of an org that it hosts. 0 and 1 are for agents that are not ours. */
const trustTiers: Record<PublishedSource, number> = { api: 2, config: 3, folder: 3, conformance: 3 };
const both: readonly A2aVersion[] = ['1.0', '0.3'];

/** Cards of agents of our own: built by the one builder, signed, and kept as the bytes that are sent. */
@Injectable()
export class PublishedCards {
  private readonly cache = new CardCache();

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly publicUrl: PublicUrl,
    private readonly signer: CardSigner,
  ) {}

  /** The card of an agent; without a promise once it was built. */
  cardFor(agent: PublishedAgent, wish: CardWish, standing: Standing): BuiltCard | Promise<BuiltCard> {
    return this.card({
      ...wish,
      key: `${agent.revision}|${standing.isDefault}|${standing.isVerified}`,
      offered: agent.versions,
      lastModified: agent.updatedAt,
      facts: () => this.factsOf(agent, standing),
    });
  }

  /**
   * The card of an agent with the public skills of others beside its own, called by the door that needs no name, which finds whose a skill is.
   * Where two have one id, it is that of the agent. `key` tells the content.
   */
  serviceCard(
    agent: PublishedAgent,
    others: readonly PublishedAgent[],
    wish: CardWish,
    { key, ...standing }: Standing & { readonly key: string },
  ): BuiltCard | Promise<BuiltCard> {
    const own = new Set(agent.skills.map(({ id }) => id));
    const modes = (of: 'inputModes' | 'outputModes') => [...new Set([agent, ...others].flatMap((one) => one[of]))];
    return this.card({
      ...wish,
      key: `service|${agent.revision}|${standing.isVerified}|${key}`,
      offered: agent.versions,
      facts: () => ({
        ...this.factsOf(agent, standing),
        doors: [{ binding: 'JSONRPC', url: `${this.publicUrl.base}/a2a` }],
        inputModes: modes('inputModes'),
        outputModes: modes('outputModes'),
        skills: [...agent.skills, ...skillsOf(others).filter(({ id }) => !own.has(id))],
      }),
    });
  }

  /** One card with the public skills of several agents, called by the door that needs no name; `key` tells its content. */
  sharedCard(
    about: { key: string; name: string; description: string },
    agents: readonly PublishedAgent[],
    version?: string,
  ): BuiltCard | Promise<BuiltCard> {
    return this.card({
      variant: 'public',
      version,
      key: about.key,
      offered: both,
      facts: () => ({
        name: about.name,
        description: about.description,
        version: VERSION.version,
        doors: [{ binding: 'JSONRPC', url: `${this.publicUrl.base}/a2a` }],
        versions: both,
        capabilities: { streaming: false, pushNotifications: false, extendedAgentCard: false },
        securitySchemes: securitySchemesOf(this.settings, false),
        inputModes: ['text/plain', 'application/json'],
        outputModes: ['text/plain', 'application/json'],
        skills: skillsOf(agents),
      }),
    });
  }

  urlsOf({ name, handle, org }: { name: string; handle?: string | null; org: OrgRef }): DoorUrls {
    const url = this.urlOf(name, org);
    const { base, grpc } = this.publicUrl;
    return {
      jsonRpc: url,
      rest: url,
      card: `${url}/.well-known/agent-card.json`,
      ...(handle && { handleCard: `${base}/a2a/${calledFrom(handle, org, defaultOrg)}/agent.json` }),
      ...(grpc !== undefined && { grpc }),
    };
  }

  /** A list of agents with where they are (RY-07). */
  index(agents: readonly PublishedAgent[]): Buffer {
    const entries = agents.map((agent) => {
      const { card, jsonRpc } = this.urlsOf(agent);
      return { name: agent.name, role: agent.description, agentCardUrl: card, endpoint: jsonRpc };
    });
    return Buffer.from(JSON.stringify({ agents: entries, protocolVersion: '1.0' }));
  }

  private urlOf(name: string, org: OrgRef): string {
    return `${this.publicUrl.base}/a2a/agents/${calledFrom(name, org, defaultOrg)}`;
  }

  private factsOf(agent: PublishedAgent, { hasStaticBearer, isDefault, isVerified }: Standing): CardFacts {
    const extensions = [...agent.extensions, ...identityOf(agent, isVerified)];
    return {
      ...agent,
      doors: this.doorsOf(agent, isDefault),
      capabilities: {
        streaming: agent.streaming,
        pushNotifications: agent.pushNotifications,
        ...(extensions.length > 0 && { extensions }),
        extendedAgentCard: agent.extendedCard,
      },
      securitySchemes: securitySchemesOf(this.settings, hasStaticBearer),
    };
  }

  /** Over gRPC v0.3 can name no agent: whoever calls there without our own metadata reaches the default one. */
  private doorsOf({ name, org }: PublishedAgent, isDefault: boolean): Door[] {
    const url = this.urlOf(name, org);
    const { grpc } = this.publicUrl;
    const versions = isDefault ? both : both.filter((version) => version !== '0.3');
    return [
      { binding: 'JSONRPC', url },
      { binding: 'HTTP+JSON', url },
      ...(grpc === undefined
        ? []
        : [{ binding: 'GRPC', url: grpc, tenant: calledFrom(name, org, defaultOrg), versions } as const]),
    ];
  }

  private card(wanted: Wanted): BuiltCard | Promise<BuiltCard> {
    const signer = this.signer.signer();
    return signer instanceof Promise ? signer.then((known) => this.signed(wanted, known)) : this.signed(wanted, signer);
  }

  private signed(wanted: Wanted, signer: Signer): BuiltCard | Promise<BuiltCard> {
    const form = formOf(wanted.offered, wanted.version);
    const key = `${signer.kid}|${form}|${wanted.variant}|${wanted.key}`;
    return this.cache.get(key) ?? this.build(key, form, wanted, signer);
  }

  private async build(key: string, form: CardForm, wanted: Wanted, signer: Signer): Promise<BuiltCard> {
    const card = encodeCard(publishedCard(wanted.facts(), wanted.variant), form);
    const body = Buffer.from(JSON.stringify(await this.signer.sign(card, form, signer)));
    const built = { body, etag: etagOf(body), lastModified: wanted.lastModified ?? new Date(systemClock.now()) };
    this.cache.set(key, built);
    return built;
  }
}

/** The conformance agent says only what the kit expects. */
function identityOf({ handle, name, org, source }: PublishedAgent, verified: boolean): AgentExtension[] {
  if (source === 'conformance') return [];
  const called = handle?.includes('@') ? handle : `${handle ?? name}@${org.slug}`;
  const params = { trustTier: trustTiers[source], handle: called, verified };
  return [{ uri: identityUri, description: 'Who vouches for this agent, and its name.', params }];
}

/** The public skills of several agents; an id that two of them have is told apart by the name of its agent. */
function skillsOf(agents: readonly PublishedAgent[]): PublishedSkill[] {
  const all = agents.flatMap(({ name, skills }) => skills.filter(isPublic).map((skill) => ({ name, skill })));
  const count = new Map<string, number>();
  for (const { skill } of all) count.set(skill.id, (count.get(skill.id) ?? 0) + 1);
  return all.map(({ name, skill }) =>
    count.get(skill.id) === 1 ? skill : { ...skill, id: namedSkill(name, skill.id) },
  );
}
