import { percentDecoded } from '../../../kernel/text.js';

/*
 * WebFinger for handles of agents (RFC 7033), pure: from the resource of a request to a name, and from an agent to the
 * descriptor with the addresses of its card and its door.
 */

/** Relation of the link to the agent card. */
export const cardRelation = 'https://a2a-protocol.org/rel/agent-card';
/** Relation of the link to the JSON-RPC door of the agent. */
export const doorRelation = 'https://a2a-protocol.org/rel/json-rpc';

export interface Descriptor {
  readonly subject: string;
  readonly aliases: readonly string[];
  readonly links: readonly { readonly rel: string; readonly type: string; readonly href: string }[];
}

/** Returns the handle `word@host` of a resource `acct:word@host`; undefined for any other resource. */
export function handleIn(resource: string): string | undefined {
  const [, handle] = /^acct:([^@\s/]+@[^@\s/]+)$/i.exec(resource) ?? [];
  return handle === undefined ? undefined : percentDecoded(handle)?.toLowerCase();
}

/** Describes an agent. @param rels restricts the links, when there are any (section 4.3). */
export function descriptorOf(
  handle: string,
  { card, jsonRpc, handleCard }: { readonly card: string; readonly jsonRpc: string; readonly handleCard?: string },
  rels: readonly string[],
): Descriptor {
  const links = [
    { rel: cardRelation, type: 'application/json', href: handleCard ?? card },
    { rel: doorRelation, type: 'application/json', href: jsonRpc },
  ];
  return {
    subject: `acct:${handle}`,
    aliases: [jsonRpc],
    links: rels.length === 0 ? links : links.filter(({ rel }) => rels.includes(rel)),
  };
}
