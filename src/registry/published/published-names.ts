import type { PublishedAgent } from '../published.types.js';

/** A name of an agent as a caller writes it: `word`, or `word@host` with the slug of an org or a host. */
export interface Called {
  /** What is before the last `@`. */
  readonly word: string;
  readonly host?: string;
  readonly whole: string;
}

const longest = 400;

/** Reads a name; undefined for what can name no agent. */
export function calledOf(text: string): Called | undefined {
  if (text.length > longest || !/^[a-z0-9]/i.test(text)) return undefined;
  const whole = text.toLowerCase();
  const at = whole.lastIndexOf('@');
  return at < 0 ? { word: whole, whole } : { word: whole.slice(0, at), host: whole.slice(at + 1), whole };
}

/** Agents by name and by handle; those of an org share one space, so no word means two. */
export function byWord(agents: readonly PublishedAgent[]): Map<string, PublishedAgent> {
  const words = new Map<string, PublishedAgent>();
  for (const agent of agents) if (agent.handle !== undefined) words.set(agent.handle, agent);
  for (const agent of agents) words.set(agent.name, agent);
  return words;
}

/** How anyone in the deployment calls an agent by one of its words: bare in the default org, `word@org` elsewhere. */
export function calledFrom(word: string, org: { slug: string }, defaultOrg: string): string {
  return org.slug === defaultOrg ? word : `${word}@${org.slug}`;
}
