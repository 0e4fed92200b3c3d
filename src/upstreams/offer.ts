import { isJsonObject, storableText, type JsonObject } from '../kernel/json.js';
import { RialtoError } from '../kernel/errors.js';
import { isDeeperThan } from '../protocol/mcp/schema-size.js';
import { maxNesting } from './upstream-result.js';
import type {
  FoundOffer,
  FoundOffers,
  Offer,
  OfferedPrompt,
  OfferedResource,
  OfferedTemplate,
  OfferedTool,
} from './upstream.types.js';

const maxPages = 64;
const maxItems = 2_000;
const maxLength = 1_048_576;
const maxName = 256;
const maxUri = 2_048;
const methodNotFound = -32_601;

/** Of a server that nobody has asked yet. */
export const nothingYet: Offer = {
  protocolVersion: '',
  serverInfo: {},
  capabilities: {},
  tools: [],
  resources: [],
  templates: [],
  prompts: [],
};

/** Asks the server for one page of a list. */
export type AskPage = (method: string, params: JsonObject) => Promise<JsonObject>;

interface ListKind<Item> {
  readonly method: string;
  readonly member: string;
  /** What tells its items apart; undefined for what is no such item. */
  readonly keyOf: (item: JsonObject) => string | undefined;
  /** Whether the first of too many will do: the others can still be asked for by their URI. */
  readonly mayBeCut?: boolean;
  /** Whether servers that have its capability may not know it. */
  readonly mayBeUnknown?: boolean;
  readonly as?: Item;
}

const tools: ListKind<OfferedTool> = {
  method: 'tools/list',
  member: 'tools',
  keyOf: ({ name, inputSchema }) => (isJsonObject(inputSchema) ? textUpTo(maxName, name) : undefined),
};
const resources: ListKind<OfferedResource> = {
  method: 'resources/list',
  member: 'resources',
  keyOf: ({ uri }) => textUpTo(maxUri, uri),
  mayBeCut: true,
};
const templates: ListKind<OfferedTemplate> = {
  method: 'resources/templates/list',
  member: 'resourceTemplates',
  keyOf: ({ uriTemplate }) => textUpTo(maxUri, uriTemplate),
  mayBeUnknown: true,
};
const prompts: ListKind<OfferedPrompt> = {
  method: 'prompts/list',
  member: 'prompts',
  keyOf: ({ name }) => textUpTo(maxName, name),
};

/**
 * All lists of a server, page by page, as it says them. What is no item of its list is left out, and of two with one name the second.
 * One that the server refuses is absent, but for its tools. Throws `remote_invalid_response` for a list that is none, does not end, or is too large to keep.
 */
export async function readOffers(ask: AskPage, capabilities: JsonObject): Promise<FoundOffers> {
  return {
    tools: capabilities.tools ? await readList(ask, tools) : [],
    resources: capabilities.resources ? await unlessRefused(readList(ask, resources)) : [],
    templates: capabilities.resources ? await unlessRefused(readList(ask, templates)) : [],
    prompts: capabilities.prompts ? await unlessRefused(readList(ask, prompts)) : [],
  };
}

/** What a look found, with what was known before in the places of the lists that the server would not give. Pure. */
export function completed(found: FoundOffer, known: Offer): Offer {
  const { resources = known.resources, templates = known.templates, prompts = known.prompts } = found;
  return { ...found, resources, templates, prompts };
}

/** One that fails at its prompts has tools all the same. */
function unlessRefused<Item>(list: Promise<Item[]>): Promise<Item[] | undefined> {
  return list.catch((thrown: unknown) => {
    if (RialtoError.from(thrown).code === 'remote_error') return undefined;
    throw thrown;
  });
}

async function readList<Item>(ask: AskPage, kind: ListKind<Item>): Promise<Item[]> {
  const items = new Map<string, JsonObject>();
  let length = 0;
  let cursor: string | undefined;
  for (let page = 0; page < maxPages; page++) {
    const answer = await ask(kind.method, cursor === undefined ? {} : { cursor }).catch(emptyWhereUnknown(kind));
    const listed = answer[kind.member];
    if (!Array.isArray(listed)) throw refused(`its ${kind.method} is no list`);
    for (const item of listed) {
      const key = isJsonObject(item) ? kind.keyOf(item) : undefined;
      if (key === undefined || items.has(key)) continue;
      if (isDeeperThan(item, maxNesting)) throw refused(`its ${kind.method} nests deeper than ${maxNesting}`);
      length += JSON.stringify(item).length;
      if (items.size >= maxItems || length > maxLength) {
        if (kind.mayBeCut) return [...items.values()] as Item[];
        throw refused(`its ${kind.method} has more than can be kept`);
      }
      items.set(key, item as JsonObject);
    }
    if (typeof answer.nextCursor !== 'string') return [...items.values()] as Item[];
    cursor = answer.nextCursor;
  }
  throw refused(`its ${kind.method} has more than ${maxPages} pages`);
}

/** One of the 2026-07-28 revision says by HTTP 404 that it does not know a method. */
function emptyWhereUnknown({ member, mayBeUnknown }: ListKind<unknown>): (thrown: unknown) => JsonObject {
  return (thrown) => {
    const { relayed, upstreamStatus } = RialtoError.from(thrown).data ?? {};
    const isUnknown = upstreamStatus === 404 || (relayed as { code?: unknown } | undefined)?.code === methodNotFound;
    if (mayBeUnknown && isUnknown) return { [member]: [] };
    throw thrown;
  };
}

function textUpTo(max: number, value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && storableText(value, max) === value ? value : undefined;
}

function refused(message: string): RialtoError {
  return new RialtoError('remote_invalid_response', { message: `the MCP server cannot be used: ${message}` });
}
