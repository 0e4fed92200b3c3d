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

/** @param offer what it has for whoever sees it; absent: for all who have given it no credential. */
export function serverOf(given: McpServerEntity, offer = offeredToAll(given)): RegisteredServer {
  const row = offer === given.offer ? given : { ...given, offer };
  const held = new Map(row.quarantinedTools.map(({ name, ...quarantine }) => [name, quarantine]));
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
      server.tools.push({ server, tool, canonical: canonical(tool.name), quarantine: held.get(tool.name) });
  }
  for (const prompt of readable('prompts', offer.prompts, 'name', problems))
    server.prompts.push({ server, prompt, canonical: canonical(prompt.name) });
  return server;
}

function withoutOutput({ outputSchema: _, ...tool }: OfferedTool): OfferedTool {
  return tool;
}

/** The items of a list as clients can read them: one that they cannot read would cost them the whole list. Adds what it finds to `problems`. */
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

/** Whether a tool is one at all, by the name that its server has for it. */
export function letsThrough({ toolAllowList: allowed }: Pick<McpServerEntity, 'toolAllowList'>, name: string): boolean {
  return allowed.length === 0 || allowed.includes(name);
}

/** A server that knows each user has nothing for others but a word on how to become one. */
function offeredToAll({ userCredentials, serverId, name, offer }: McpServerEntity): Offer {
  if (userCredentials !== 'required') return offer;
  return {
    ...nothingYet,
    serverInfo: { name, version: '' },
    capabilities: { tools: {} },
    instructions: `This server needs a credential of yours: PUT /api/mcp/servers/${serverId}/credential`,
  };
}

/** Its tools as the skills of an agent of ours. */
export function skillToolsOf({ tools }: RegisteredServer): SkillTool[] {
  const shown = tools.filter(({ quarantine }) => !quarantine);
  return shown.map(({ tool: { name, title, description, inputSchema } }) => ({
    name,
    ...(typeof title === 'string' && { title }),
    ...(typeof description === 'string' && { description }),
    inputSchema: isJsonObject(inputSchema) ? inputSchema : { type: 'object' },
  }));
}

/** Whether an allow list lets a URI through, or a template: each of its entries is one or the other (AE-22). */
export function mayRead({ resourceAllowList: allowed }: McpServerEntity, uri: string): boolean {
  return (
    allowed.length === 0 || allowed.some((entry) => entry === uri || (!climbs(uri) && matchesTemplate(entry, uri)))
  );
}

/** What a server might take for another place than the text says: `..`, and separators that are encoded. */
function climbs(uri: string): boolean {
  const plain = uri.replace(/%2e/gi, '.');
  return /(?:^|[/\\])\.{1,2}(?:$|[/\\?#])/.test(plain) || /%(?:2f|5c|25)|\\/i.test(uri);
}

/**
 * Who is asked for a resource: whoever lists it, then whoever has a template for it, then whoever has resources that begin alike, then the
 * first that has resources at all (AE-51, AE-52). Undefined when nobody has.
 */
export function ownerOfUri(servers: readonly RegisteredServer[], uri: string): RegisteredServer | undefined {
  const able = servers.filter(({ row }) => row.offer.capabilities.resources);
  return (
    able.find(({ resources }) => resources.some((resource) => resource.uri === uri)) ??
    able.find(({ templates }) => templates.some(({ uriTemplate }) => matchesTemplate(uriTemplate, uri))) ??
    able.find((server) => startsOf(server).some((start) => uri.startsWith(start))) ??
    able[0]
  );
}

/** Scheme and authority of its resources, and what stands before the first expression of its templates. */
function startsOf({ resources, templates }: RegisteredServer): string[] {
  return [
    ...resources.flatMap(({ uri }) => /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i.exec(uri)?.[0] ?? []),
    ...templates.map(({ uriTemplate }) => templateStart(uriTemplate)).filter((start) => start.includes(':')),
  ];
}
