import { createHash } from 'node:crypto';

/*
 * How tools are called. MCP allows A-Z a-z 0-9 _ - . and 1 to 128 characters (specification 2025-11-25, server/tools); many clients
 * allow only [A-Za-z0-9_] and 64. So each skill has a canonical name and a safe alias. No name is ever split again to find its
 * agent: names are looked up. A shortened or changed name ends in 8 hex digits of the sha256 of the full one.
 */

const maxName = 128;
const maxAlias = 64;
const maxSlug = 48;

/**
 * The slug of an agent's name (RE-06): NFKD without its marks, lower case, each run of other characters one `_`, none at the
 * ends; so it never holds a dot or `__`. A name that leaves nothing is `agent_<hash>`; over 48 characters it is cut, with hash.
 */
export function slugOf(name: string): string {
  const slug = slugged(name);
  if (slug === '') return `agent_${hashOf(name)}`;
  return slug.length > maxSlug ? shortened(slug, maxSlug, name) : slug;
}

/**
 * `<agentSlug>.<skillId>`, the skill id verbatim (RE-05), at most 128 characters. Characters that MCP does not allow become one `_`
 * a run, and such a name, like one that is too long, ends in the hash (requirements.md 1.6 C17).
 */
export function canonicalName(slug: string, skillId: string): string {
  return legal(`${slug}.${skillId}`, /[^A-Za-z0-9_.-]+/g, maxName);
}

/**
 * `a2a_<agentSlug>_<skill id slugged>` (RE-07): [a-z0-9_], at most 64 characters, cut with the hash of the canonical name when
 * over. Depends on its own agent and skill only; `disambiguate` says what happens when two are equal.
 */
export function safeAlias(slug: string, skillId: string): string {
  const skill = slugged(skillId);
  if (skill === '') return hashedAlias(slug, skillId);
  const alias = `a2a_${slug}_${skill}`;
  return alias.length > maxAlias ? hashedAlias(slug, skillId) : alias;
}

/** The alias that no other skill shares: always with the hash of the canonical name. */
export function hashedAlias(slug: string, skillId: string, digits = 8): string {
  const skill = slugged(skillId);
  return shortened(`a2a_${slug}${skill && `_${skill}`}`, maxAlias, `${slug}.${skillId}`, digits);
}

export interface NamedSkill {
  readonly slug: string;
  readonly skillId: string;
  /** When the skill was first seen on its agent's card, in ms; all alike when absent. */
  readonly since?: number;
}

/**
 * Aliases for a list of skills, in its order. The first to want a safe alias has it; each later one has its hashed alias.
 * First is who was seen first; of those seen at once the agent that comes first in the list, and inside one agent a skill id
 * that is its own slug before one that had to be changed, the rest in code unit order. So no alias ever changes hands because
 * of an agent, or a skill on a changed card, that appeared after it.
 */
export function disambiguate<Skill extends NamedSkill>(skills: readonly Skill[]): (Skill & { alias: string })[] {
  const taken = new Set<string>();
  const aliases = new Map<Skill, string>();
  for (const skill of inOrderOfRight(skills)) {
    let alias = safeAlias(skill.slug, skill.skillId);
    for (let digits = 8; taken.has(alias) && digits <= 32; digits += 8) {
      alias = hashedAlias(skill.slug, skill.skillId, digits);
    }
    taken.add(alias);
    aliases.set(skill, alias);
  }
  return skills.map((skill) => ({ ...skill, alias: aliases.get(skill)! }));
}

/** `<serverId>__<tool>`, the name of an upstream MCP tool; foreign characters and length as in `canonicalName`. */
export function upstreamName(serverId: string, tool: string): string {
  return legal(literalName(serverId, tool), /[^A-Za-z0-9_.-]+/g, maxName);
}

/** `<serverId>__<tool>` as it is, for callers who put it together themselves: where `upstreamName` changes it, a spelling of that. */
export function literalName(serverId: string, tool: string): string {
  return `${serverId}__${tool}`;
}

/** A name for clients that take only [A-Za-z0-9_-] and 64 characters; the name itself when it fits, else changed, with hash. */
export function portableName(name: string): string {
  return legal(name, /[^A-Za-z0-9_-]+/g, maxAlias);
}

function inOrderOfRight<Skill extends NamedSkill>(skills: readonly Skill[]): Skill[] {
  const agents = new Map<string, Skill[]>();
  for (const skill of skills) {
    const own = agents.get(skill.slug);
    if (own) own.push(skill);
    else agents.set(skill.slug, [skill]);
  }
  const changed = ({ skillId }: Skill) => (slugged(skillId) === skillId ? 0 : 1);
  const inList = [...agents.values()].flatMap((own) =>
    own.sort((a, b) => changed(a) - changed(b) || (a.skillId < b.skillId ? -1 : a.skillId > b.skillId ? 1 : 0)),
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
