import { createHash } from 'node:crypto';

/*
 * Names of tools. MCP allows A-Z a-z 0-9 _ - . and 1 to 128 characters (specification 2025-11-25, server/tools); many
 * clients allow only [A-Za-z0-9_] and 64. So each skill has a canonical name and a safe alias. Names are looked up, and
 * never split to find their agent. A shortened or changed name ends in 8 hex digits of the sha256 of the full name.
 */

const maxName = 128;
const maxAlias = 64;
const maxSlug = 48;

/**
 * Returns the slug of an agent's name (RE-06): NFKD without marks, lower case, one `_` for each run of other
 * characters, none at the ends. So a slug never has a dot or `__`. A name without usable characters becomes
 * `agent_<hash>`; a slug over 48 characters is cut and ends in the hash.
 */
export function slugOf(name: string): string {
  const slug = slugged(name);
  if (slug === '') return `agent_${hashOf(name)}`;
  return slug.length > maxSlug ? shortened(slug, maxSlug, name) : slug;
}

/**
 * Returns `<agentSlug>.<skillId>` with the skill id verbatim (RE-05), at most 128 characters. A run of characters that
 * MCP does not allow becomes one `_`. Such a name, like one that is too long, ends in the hash.
 */
export function canonicalName(slug: string, skillId: string): string {
  return legal(`${slug}.${skillId}`, /[^A-Za-z0-9_.-]+/g, maxName);
}

/**
 * Returns `a2a_<agentSlug>_<slug of the skill id>` (RE-07): [a-z0-9_], at most 64 characters; a longer alias is cut and
 * ends in the hash of the canonical name. It depends only on its own agent and skill; `disambiguate` handles equal
 * aliases.
 */
export function safeAlias(slug: string, skillId: string): string {
  const skill = slugged(skillId);
  if (skill === '') return hashedAlias(slug, skillId);
  const alias = `a2a_${slug}_${skill}`;
  return alias.length > maxAlias ? hashedAlias(slug, skillId) : alias;
}

/** Returns an alias that no other skill has: it always ends in the hash of the canonical name. */
export function hashedAlias(slug: string, skillId: string, digits = 8): string {
  const skill = slugged(skillId);
  return shortened(`a2a_${slug}${skill && `_${skill}`}`, maxAlias, `${slug}.${skillId}`, digits);
}

export interface NamedSkill {
  readonly slug: string;
  readonly skillId: string;
  /** When the skill was first seen on its agent's card, in milliseconds; treated as equal when absent. */
  readonly since?: number;
}

/**
 * Assigns aliases to a list of skills, in its order. The first skill that needs a safe alias gets it; each later one
 * gets its hashed alias. The first is the skill that was seen first. Among skills seen at the same time, the agent that
 * comes first in the list wins; within one agent, a skill id that equals its slug wins over one that had to be changed,
 * and the rest is in code unit order. So an alias never moves to an agent, or to a skill on a changed card, that
 * appeared later.
 */
export function disambiguate<Skill extends NamedSkill>(skills: readonly Skill[]): (Skill & { alias: string })[] {
  const taken = new Set<string>();
  const aliases = new Map<Skill, string>();
  for (const skill of inOrderOfPrecedence(skills)) {
    let alias = safeAlias(skill.slug, skill.skillId);
    for (let digits = 8; taken.has(alias) && digits <= 32; digits += 8) {
      alias = hashedAlias(skill.slug, skill.skillId, digits);
    }
    taken.add(alias);
    aliases.set(skill, alias);
  }
  return skills.map((skill) => ({ ...skill, alias: aliases.get(skill)! }));
}

/**
 * Returns `<serverId>__<tool>`, the name of an upstream MCP tool; other characters and long names are treated as in
 * `canonicalName`.
 */
export function upstreamName(serverId: string, tool: string): string {
  return legal(literalName(serverId, tool), /[^A-Za-z0-9_.-]+/g, maxName);
}

/**
 * Returns `<serverId>__<tool>` unchanged, for callers that build names themselves. When `upstreamName` changes the
 * name, this is another spelling of it.
 */
export function literalName(serverId: string, tool: string): string {
  return `${serverId}__${tool}`;
}

/**
 * Returns a name for clients that accept only [A-Za-z0-9_-] and 64 characters: the name itself when it fits, else a
 * changed name with its hash.
 */
export function portableName(name: string): string {
  return legal(name, /[^A-Za-z0-9_-]+/g, maxAlias);
}

function inOrderOfPrecedence<Skill extends NamedSkill>(skills: readonly Skill[]): Skill[] {
  const agents = new Map<string, Skill[]>();
  for (const skill of skills) {
    const skillsOfAgent = agents.get(skill.slug);
    if (skillsOfAgent) skillsOfAgent.push(skill);
    else agents.set(skill.slug, [skill]);
  }
  const changed = ({ skillId }: Skill) => (slugged(skillId) === skillId ? 0 : 1);
  const inList = [...agents.values()].flatMap((skillsOfAgent) =>
    skillsOfAgent.sort(
      (a, b) => changed(a) - changed(b) || (a.skillId < b.skillId ? -1 : a.skillId > b.skillId ? 1 : 0),
    ),
  );
  return inList.sort((a, b) => (a.since ?? 0) - (b.since ?? 0));
}

function slugged(text: string): string {
  return trimmed(
    text
      .normalize('NFKD')
      .replace(/\p{M}+/gu, '')
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '_'),
  );
}

function legal(name: string, foreign: RegExp, max: number): string {
  const clean = name.replace(foreign, '_');
  return clean === name && name.length <= max ? name : shortened(clean, max, name);
}

function shortened(name: string, max: number, full: string, digits = 8): string {
  return `${name.slice(0, max - digits - 1).replace(/[_.]$/, '')}_${hashOf(full, digits)}`;
}

function trimmed(text: string): string {
  return text.replace(/^_|_$/g, '');
}

function hashOf(text: string, digits = 8): string {
  return createHash('sha256').update(text).digest('hex').slice(0, digits);
}
