import type { OrgRef } from '../../kernel/call-context.js';
import type { PublishedSkill } from '../../protocol/a2a/card/published-card.js';
import type { PublishedAgentEntity } from './published-agent.entity.js';
import type { Definition, ExecutorConfig, PublishedAbout, PublishedAgent } from '../published.types.js';
import type { ChangePublished, GivenExecutor } from './publishing.types.js';
import type { RegisteredAgent } from '../registry.types.js';
import { skillsOfTools, type ServersOfOrg } from '../tool-servers.js';

const usualModes = { input: ['text/plain', 'application/json', '*/*'], output: ['text/plain', 'application/json'] };

/** Defaults of a new agent. It is disabled: agents opt in to A2A (RI-03). */
const blank: Definition = {
  name: '',
  handle: null,
  description: '',
  executor: { kind: 'echo' },
  enabled: false,
  acceptCleartext: null,
  publishToCard: false,
  history: 'context',
  card: {
    skills: [],
    inputModes: [],
    outputModes: [],
    streaming: true,
    pushNotifications: true,
    extendedCard: true,
    extensions: [],
    versions: ['1.0', '0.3'],
    version: '1.0.0',
  },
};

/** Merges the given members into a definition; null clears a member. Pure. */
export function definitionOf(given: ChangePublished, before: Definition = blank): Definition {
  return {
    name: given.name ?? before.name,
    handle: given.handle === undefined ? before.handle : given.handle,
    description: given.description ?? before.description,
    executor: given.executor ? withoutKey(given.executor) : before.executor,
    enabled: given.a2a_enabled ?? before.enabled,
    acceptCleartext: given.a2a_accept_cleartext === undefined ? before.acceptCleartext : given.a2a_accept_cleartext,
    publishToCard: given.publishToCard ?? given.trust?.publish_to_a2a ?? before.publishToCard,
    history: given.history ?? before.history,
    card: aboutOf(given, before.card),
  };
}

/** Returns the executor as it is stored, without its key, which is a secret. */
function withoutKey(executor: GivenExecutor): ExecutorConfig {
  if (executor.kind !== 'llm') return executor;
  const { apiKey: _, ...config } = executor;
  return config;
}

/** Returns the key that was given with an executor; null: remove the key; undefined: keep the stored key. */
export function apiKeyOf({ executor }: Pick<ChangePublished, 'executor'>): string | null | undefined {
  return executor?.kind === 'llm' ? executor.apiKey : undefined;
}

function aboutOf(given: ChangePublished, before: PublishedAbout): PublishedAbout {
  const provider = given.provider === undefined ? before.provider : (given.provider ?? undefined);
  const documentationUrl =
    given.documentationUrl === undefined ? before.documentationUrl : (given.documentationUrl ?? undefined);
  const iconUrl = given.iconUrl === undefined ? before.iconUrl : (given.iconUrl ?? undefined);
  return {
    skills: given.skills?.map(skillOf) ?? before.skills,
    inputModes: given.defaultInputModes ?? before.inputModes,
    outputModes: given.defaultOutputModes ?? before.outputModes,
    streaming: given.streaming ?? before.streaming,
    pushNotifications: given.pushNotifications ?? before.pushNotifications,
    extendedCard: given.extendedCard ?? before.extendedCard,
    extensions: (given.extensions as PublishedAbout['extensions'] | undefined) ?? before.extensions,
    versions: given.protocolVersions ?? before.versions,
    version: given.version ?? before.version,
    ...(provider && { provider }),
    ...(documentationUrl !== undefined && { documentationUrl }),
    ...(iconUrl !== undefined && { iconUrl }),
  };
}

type GivenSkill = NonNullable<ChangePublished['skills']>[number];

/**
 * Returns a complete skill. Name, description and tags are required on a card (v1.0 section 4.4.5); missing ones get
 * the id.
 */
function skillOf({
  security: _1,
  securitySchemes: _2,
  securityRequirements: _3,
  ...skill
}: GivenSkill): PublishedSkill {
  const name = skill.name || skill.id;
  const tags = skill.tags?.length ? skill.tags : [skill.id];
  return { ...(skill as PublishedSkill), name, description: skill.description || name, tags };
}

type Remotes = ReadonlyMap<string, Pick<RegisteredAgent, 'card'>>;

/** Data that an agent depends on besides its row. */
export interface Surroundings {
  readonly org: OrgRef;
  /** The setting of the deployment for unencrypted messages. */
  readonly acceptsCleartext: boolean;
  readonly servers: ServersOfOrg;
  /** The registered agents, by id and by slug. */
  readonly remotes: Remotes;
  /** Time when this data was read. */
  readonly at: Date;
}

/** Returns the agent as doors see it, with defaults for missing members. Pure. */
export function agentOf(
  row: PublishedAgentEntity,
  { org, acceptsCleartext, servers, remotes, at }: Surroundings,
): PublishedAgent {
  const { skills, inputModes, outputModes, ...about } = row.card;
  const revision = `${row.id}.${row.revision}`;
  const remoteModes = inputModes.length > 0 ? undefined : modesOfRemote(row.executor, remotes);
  const toolSkills = skills.length > 0 ? undefined : skillsOfTools(row.executor, servers);
  return {
    ...about,
    id: row.id,
    org,
    name: row.name,
    ...(row.handle !== null && { handle: row.handle }),
    description: row.description,
    executor: row.executor,
    source: row.source,
    enabled: row.enabled,
    acceptCleartext: row.acceptCleartext ?? acceptsCleartext,
    keys: row.keys,
    publishToCard: row.publishToCard,
    history: row.history,
    skills: toolSkills ?? (skills.length > 0 ? skills : [chatWith(row)]),
    inputModes: inputModes.length > 0 ? inputModes : (remoteModes ?? usualModes.input),
    outputModes: outputModes.length > 0 ? outputModes : usualModes.output,
    updatedAt: toolSkills ? at : row.updatedAt,
    revision: toolSkills
      ? `${revision}.${servers.version}`
      : remoteModes
        ? `${revision}.${remoteModes.join()}`
        : revision,
  };
}

/**
 * Returns the input modes of the registered agent behind a published one, from its card and skills; undefined when
 * the card states none.
 */
function modesOfRemote(executor: ExecutorConfig, remotes: Remotes): string[] | undefined {
  const card = executor.kind === 'remote' ? remotes.get(executor.agentId)?.card : undefined;
  if (!card || card.defaultInputModes.length === 0) return undefined;
  const ofSkills = card.skills.flatMap(({ inputModes = [], inputSchema }) =>
    inputSchema === undefined ? inputModes : [...inputModes, 'application/json'],
  );
  return [...new Set([...card.defaultInputModes, ...ofSkills])];
}

/** Returns the one general skill of an agent that declares none (RY-08). */
function chatWith({ name, description }: PublishedAgentEntity): PublishedSkill {
  return { id: 'chat', name: 'Chat', description: description || `Talk to ${name}.`, tags: ['chat'] };
}
