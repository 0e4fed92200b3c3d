import { isJsonObject, storableText, type JsonObject } from '../../kernel/json.js';
import { mendItem, type ItemList } from '../../protocol/mcp/list-items.js';
import { upstreamName } from '../../protocol/mcp/tool-names.js';
import { matchesTemplate, templateStart } from '../../protocol/mcp/uri-template.js';
import type { SkillTool } from '../../registry/tool-servers.js';
import type { McpServerEntity } from './mcp-server.entity.js';
import { nothingYet } from './offer.js';
import type { RegisteredServer, UpstreamPrompt, UpstreamTool } from '../registered-server.types.js';
import type { ListProblem, Offer, OfferedTool } from '../upstream.types.js';

const maxProblem = 300;

/**
 * Builds a server from its row.
 * @param offer the offer to one caller; absent: the offer to callers without a credential.
 */
export function serverOf(given: McpServerEntity, offer = offeredToAll(given)): RegisteredServer {
  const row = offer === given.offer ? given : { ...given, offer };
  const quarantined = new Map(row.quarantinedTools.map(({ name, ...quarantine }) => [name, quarantine]));
  const problems: ListProblem[] = [...(offer.problems ?? [])];
  const bare = new Set(problems.filter(({ effect }) => effect === 'mended').map(({ name }) => name));
  const server: RegisteredServer & { tools: UpstreamTool[]; prompts: UpstreamPrompt[] } = {
    row,
    tools: [],
    resources: readable('resources', offer.resources, 'uri', problems).filter(({ uri }) => mayRead(row, uri)),
    templates: readable('resourceTemplates', offer.templates, 'uriTemplate', problems).filter(({ uriTemplate }) =>
      mayRead(row, uriTemplate),
    ),
    prompts: [],
    problems,
  };
  const canonical = (name: string): string => upstreamName(row.serverId, name);
  for (const given of readable('tools', offer.tools, 'name', problems)) {
    const tool = bare.has(given.name) ? withoutOutput(given) : given;
    if (letsThrough(row, tool.name))
      server.tools.push({ server, tool, canonical: canonical(tool.name), quarantine: quarantined.get(tool.name) });
  }
  for (const prompt of readable('prompts', offer.prompts, 'name', problems))
    server.prompts.push({ server, prompt, canonical: canonical(prompt.name) });
  return server;
}

function withoutOutput({ outputSchema: _, ...tool }: OfferedTool): OfferedTool {
  return tool;
}

/**
 * Returns the items of a list that clients can read, mended where needed: one unreadable item would make clients refuse
 * the whole list. Adds its findings to `problems`.
 */
function readable<Key extends string, Item extends JsonObject & Record<Key, string>>(
  list: ItemList,
  items: readonly Item[],
  key: Key,
  problems: ListProblem[],
): Item[] {
  return items.flatMap((given) => {
    const { item, problems: found } = mendItem(list, given);
    if (found.length > 0) {
      const problem = storableText(found.join('; '), maxProblem);
      problems.push({ list, name: given[key], problem, effect: item ? 'mended' : 'left out' });
    }
    return item ? [item as Item] : [];
  });
}

/** Returns whether the allow list permits a tool, by its name at the server. */
export function letsThrough({ toolAllowList: allowed }: Pick<McpServerEntity, 'toolAllowList'>, name: string): boolean {
  return allowed.length === 0 || allowed.includes(name);
}

/**
 * A server with required user credentials offers nothing to callers without one, except the instruction how to set it.
 */
function offeredToAll({ userCredentials, serverId, name, offer }: McpServerEntity): Offer {
  if (userCredentials !== 'required') return offer;
  return {
    ...nothingYet,
    serverInfo: { name, version: '' },
    capabilities: { tools: {} },
    instructions: `This server needs your own credential: PUT /api/mcp/servers/${serverId}/credential`,
  };
}

/** Returns the tools as skills of a published agent. */
export function skillToolsOf({ tools }: RegisteredServer): SkillTool[] {
  const shown = tools.filter(({ quarantine }) => !quarantine);
  return shown.map(({ tool: { name, title, description, inputSchema } }) => ({
    name,
    ...(typeof title === 'string' && { title }),
    ...(typeof description === 'string' && { description }),
    inputSchema: isJsonObject(inputSchema) ? inputSchema : { type: 'object' },
  }));
}

/** Returns whether the allow list permits a URI or a template. Each entry is a URI or a template (AE-22). */
export function mayRead({ resourceAllowList: allowed }: McpServerEntity, uri: string): boolean {
  return (
    allowed.length === 0 || allowed.some((entry) => entry === uri || (!mayEscape(uri) && matchesTemplate(entry, uri)))
  );
}

/** Returns the server, unless its allow list excludes the URI. */
export function unlessExcluded(server: RegisteredServer | undefined, uri: string): RegisteredServer | undefined {
  return server && mayRead(server.row, uri) ? server : undefined;
}

/**
 * Returns whether a server could resolve a URI to another place than its text says: it holds `..` or encoded
 * separators.
 */
function mayEscape(uri: string): boolean {
  const plain = uri.replace(/%2e/gi, '.');
  return /(?:^|[/\\])\.{1,2}(?:$|[/\\?#])/.test(plain) || /%(?:2f|5c|25)|\\/i.test(uri);
}

/**
 * Returns the server to ask for a resource: the first that lists it, else the first with a matching template, else the
 * first with resources that start alike, else the first with resources at all (AE-51, AE-52). Undefined when there is
 * none.
 */
export function ownerOfUri(servers: readonly RegisteredServer[], uri: string): RegisteredServer | undefined {
  const candidates = servers.filter(({ row }) => row.offer.capabilities.resources);
  return (
    candidates.find(({ resources }) => resources.some((resource) => resource.uri === uri)) ??
    candidates.find(({ templates }) => templates.some(({ uriTemplate }) => matchesTemplate(uriTemplate, uri))) ??
    candidates.find((server) => startsOf(server).some((start) => uri.startsWith(start))) ??
    candidates[0]
  );
}

/** Returns scheme and authority of its resources, and the part of its templates before the first expression. */
function startsOf({ resources, templates }: RegisteredServer): string[] {
  return [
    ...resources.flatMap(({ uri }) => /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i.exec(uri)?.[0] ?? []),
    ...templates.map(({ uriTemplate }) => templateStart(uriTemplate)).filter((start) => start.includes(':')),
  ];
}
