import { Inject, Injectable } from '@nestjs/common';
import type { OrgRef } from '../../kernel/call-context.js';
import type { TrustTier } from '../../kernel/trust.js';
import { systemClock } from '../../kernel/clock.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { PublicUrl } from '../../platform/http/public-url.js';
import { etagOf } from '../../platform/http/validated-answer.js';
import type { Signer } from '../../platform/secrets/signing-keys.js';
import { VERSION } from '../../platform/telemetry/version.js';
import { defaultOrg } from '../../policy/auth.service.js';
import { e2eeUri, suite } from '../../protocol/e2ee/card-extension.js';
import { envelopeVersion } from '../../protocol/e2ee/envelope.js';
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
import { namedSkill, type PublishedAgent } from '../published.types.js';

/** Selects one card of an agent. `version` is the `A2A-Version` header of the request, if any. */
export interface CardWish {
  readonly variant: CardVariant;
  readonly version?: string;
}

/** Facts that a card depends on and that are not part of its agent. */
export interface Standing {
  readonly hasStaticBearer: boolean;
  /** True for the default agent of its org. */
  readonly isDefault: boolean;
  /** True when the host of the agent's handle is its org or a domain of the org. */
  readonly isVerified: boolean;
  /** The tier of the agent's org. */
  readonly trustTier: TrustTier;
}

/** URLs of an agent, for people. */
export interface DoorUrls {
  readonly jsonRpc: string;
  readonly rest: string;
  readonly card: string;
  readonly handleCard?: string;
  /** Public keys of the agent for end-to-end encryption. */
  readonly keys: string;
  readonly grpc?: string;
}

interface Wanted extends CardWish {
  /** Cache key that covers all content of the card. */
  readonly key: string;
  readonly offered: readonly A2aVersion[];
  /** Undefined: the time of the build. */
  readonly lastModified?: Date;
  readonly facts: () => CardFacts;
}

/** Extension with the statements of the gateway about its agents (RI-13). */
const identityUri = 'urn:rialto:identity:v1';
const both: readonly A2aVersion[] = ['1.0', '0.3'];

/** Builds and signs the cards of published agents and caches them as bytes. */
@Injectable()
export class PublishedCards {
  private readonly cache = new CardCache();

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly publicUrl: PublicUrl,
    private readonly signer: CardSigner,
  ) {}

  /** Returns the card of an agent; without a promise when it is cached. */
  cardFor(agent: PublishedAgent, wish: CardWish, standing: Standing): BuiltCard | Promise<BuiltCard> {
    return this.card({
      ...wish,
      key: `${agent.revision}|${standing.isDefault}|${standing.isVerified}|${standing.trustTier}`,
      offered: agent.versions,
      lastModified: agent.updatedAt,
      facts: () => this.factsOf(agent, standing),
    });
  }

  /**
   * Returns the card of an agent with the public skills of other agents added. The door without an agent name serves
   * it and finds the agent of each skill. When two skills have the same id, the skill of `agent` stays. `key`
   * identifies the content.
   */
  serviceCard(
    agent: PublishedAgent,
    others: readonly PublishedAgent[],
    wish: CardWish,
    { key, ...standing }: Standing & { readonly key: string },
  ): BuiltCard | Promise<BuiltCard> {
    const ids = new Set(agent.skills.map(({ id }) => id));
    const modes = (of: 'inputModes' | 'outputModes') => [...new Set([agent, ...others].flatMap((one) => one[of]))];
    return this.card({
      ...wish,
      key: `service|${agent.revision}|${standing.isVerified}|${standing.trustTier}|${key}`,
      offered: agent.versions,
      facts: () => ({
        ...this.factsOf(agent, standing),
        doors: [{ binding: 'JSONRPC', url: `${this.publicUrl.base}/a2a` }],
        inputModes: modes('inputModes'),
        outputModes: modes('outputModes'),
        skills: [...agent.skills, ...skillsOf(others).filter(({ id }) => !ids.has(id))],
      }),
    });
  }

  /**
   * Returns one card with the public skills of several agents. The door without an agent name serves it. `key`
   * identifies the content.
   */
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
    const byHandle = `${base}/a2a/${calledFrom(handle ?? name, org, defaultOrg)}`;
    return {
      jsonRpc: url,
      rest: url,
      card: `${url}/.well-known/agent-card.json`,
      keys: `${byHandle}/keys.json`,
      ...(handle && { handleCard: `${byHandle}/agent.json` }),
      ...(grpc !== undefined && { grpc }),
    };
  }

  /** Returns the index: a list of agents with their URLs (RY-07). */
  index(agents: readonly PublishedAgent[]): string {
    const entries = agents.map((agent) => {
      const { card, jsonRpc } = this.urlsOf(agent);
      return { name: agent.name, role: agent.description, agentCardUrl: card, endpoint: jsonRpc };
    });
    return JSON.stringify({ agents: entries, protocolVersion: '1.0' });
  }

  private urlOf(name: string, org: OrgRef): string {
    return `${this.publicUrl.base}/a2a/agents/${calledFrom(name, org, defaultOrg)}`;
  }

  private factsOf(agent: PublishedAgent, standing: Standing): CardFacts {
    const { hasStaticBearer, isDefault } = standing;
    const extensions = [...agent.extensions, ...identityOf(agent, standing), ...this.encryptionOf(agent)];
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

  /**
   * Returns the extension that tells senders where the keys of an agent are. It is required when the agent accepts
   * encrypted messages only (RI-06, RI-52).
   */
  private encryptionOf(agent: PublishedAgent): AgentExtension[] {
    if (agent.keys.length === 0) return [];
    const { keys } = this.urlsOf(agent);
    return [
      {
        uri: e2eeUri,
        description: 'Messages to this agent can be encrypted end to end.',
        required: !agent.acceptCleartext,
        params: { keys, suite, version: envelopeVersion },
      },
    ];
  }

  /**
   * Returns the doors of an agent. v0.3 over gRPC has no way to name an agent: without the gateway's metadata a call
   * goes to the default agent.
   */
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
    const body = JSON.stringify(await this.signer.sign(card, form, signer));
    const built = { body, etag: etagOf(body), lastModified: wanted.lastModified ?? new Date(systemClock.now()) };
    this.cache.set(key, built);
    return built;
  }
}

/**
 * Returns the identity extension. The conformance agent has none, because its card contains only what the kit
 * expects.
 */
function identityOf(
  { handle, name, org, source }: PublishedAgent,
  { isVerified: verified, trustTier }: Standing,
): AgentExtension[] {
  if (source === 'conformance') return [];
  const called = handle?.includes('@') ? handle : `${handle ?? name}@${org.slug}`;
  const params = { trustTier, handle: called, verified };
  return [{ uri: identityUri, description: "The trust tier of the agent's org, and the agent's name.", params }];
}

/**
 * Returns the public skills of several agents. When two agents have the same skill id, the id gets the agent name as
 * a prefix.
 */
function skillsOf(agents: readonly PublishedAgent[]): PublishedSkill[] {
  const all = agents.flatMap(({ name, skills }) => skills.filter(isPublic).map((skill) => ({ name, skill })));
  const count = new Map<string, number>();
  for (const { skill } of all) count.set(skill.id, (count.get(skill.id) ?? 0) + 1);
  return all.map(({ name, skill }) =>
    count.get(skill.id) === 1 ? skill : { ...skill, id: namedSkill(name, skill.id) },
  );
}
