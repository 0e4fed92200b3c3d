import type { PublishedAgent } from '../published.types.js';

/**
 * The name of an agent as a caller writes it: `word`, or `word@host`, where `host` is the slug of an org or a host.
 */
export interface Called {
  /** The part before the last `@`. */
  readonly word: string;
  /** The host has no port: the owner of a host owns all its ports. */
  readonly host?: string;
  readonly whole: string;
}

const longest = 400;

/** Parses a name; undefined when it cannot be a name of an agent. */
export function calledOf(text: string): Called | undefined {
  if (text.length > longest || !/^[a-z0-9]/i.test(text)) return undefined;
  const whole = text.toLowerCase();
  const at = whole.lastIndexOf('@');
  if (at < 0) return { word: whole, whole };
  return { word: whole.slice(0, at), host: whole.slice(at + 1).replace(/:\d+$/, ''), whole };
}

/** Maps names and handles to agents. In one org they share one namespace, so each word means one agent. */
export function byWord(agents: readonly PublishedAgent[]): Map<string, PublishedAgent> {
  const words = new Map<string, PublishedAgent>();
  for (const agent of agents) if (agent.handle !== undefined) words.set(agent.handle, agent);
  for (const agent of agents) words.set(agent.name, agent);
  return words;
}

/**
 * Returns the name that callers of the deployment use for an agent: the word in the default org, `word@org` in other
 * orgs.
 */
export function calledFrom(word: string, org: { slug: string }, defaultOrg: string): string {
  return org.slug === defaultOrg ? word : `${word}@${org.slug}`;
}
