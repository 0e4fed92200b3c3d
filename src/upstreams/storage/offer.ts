import { isJsonObject, storableText, type Json, type JsonObject } from '../../kernel/json.js';
import { RialtoError } from '../../kernel/errors.js';
import { mendItem, outputFault, type ItemList } from '../../protocol/mcp/list-items.js';
import { isDeeperThan } from '../../protocol/mcp/schema-size.js';
import { maxNesting } from '../upstream-result.js';
import type {
  FoundOffer,
  FoundOffers,
  ListProblem,
  Offer,
  OfferedPrompt,
  OfferedResource,
  OfferedTemplate,
  OfferedTool,
} from '../upstream.types.js';

const maxPages = 64;
const maxItems = 2_000;
const maxLength = 1_048_576;
const maxName = 256;
const maxUri = 2_048;
/** Of one list: so many of its items are named that clients could not read. */
const maxProblems = 50;
const maxProblem = 300;
/** Pages in a row that bring nothing new: more do not. */
const maxVain = 3;
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
  readonly member: ItemList;
  /** What tells its items apart: the member, and how long it may be. */
  readonly key: 'name' | 'uri' | 'uriTemplate';
  readonly maxKey: number;
  /** Whether the first of too many will do: the others can still be asked for by their URI. */
  readonly mayBeCut?: boolean;
  /** Whether servers that have its capability may not know it. */
  readonly mayBeUnknown?: boolean;
  readonly as?: Item;
}

const tools: ListKind<OfferedTool> = {
  method: 'tools/list',
  member: 'tools',
  key: 'name',
  maxKey: maxName,
};
const resources: ListKind<OfferedResource> = {
  method: 'resources/list',
  member: 'resources',
  key: 'uri',
  maxKey: maxUri,
  mayBeCut: true,
};
const templates: ListKind<OfferedTemplate> = {
  method: 'resources/templates/list',
  member: 'resourceTemplates',
  key: 'uriTemplate',
  maxKey: maxUri,
  mayBeUnknown: true,
};
const prompts: ListKind<OfferedPrompt> = {
  method: 'prompts/list',
  member: 'prompts',
  key: 'name',
  maxKey: maxName,
};

/**
 * All lists of a server, page by page, as it says them. What clients could not read as an item of its list is left out and named in
 * `problems`, and of two with one name the second. A list that the server refuses is absent, but for its tools. Throws
 * `remote_invalid_response` for a list that is none, or is too large to keep.
 */
export async function readOffers(ask: AskPage, capabilities: JsonObject): Promise<FoundOffers> {
  const problems: ListProblem[] = [];
  const found = {
    tools: capabilities.tools ? await readList(ask, tools, problems) : [],
    resources: capabilities.resources ? await unlessRefused(readList(ask, resources, problems)) : [],
    templates: capabilities.resources ? await unlessRefused(readList(ask, templates, problems)) : [],
    prompts: capabilities.prompts ? await unlessRefused(readList(ask, prompts, problems)) : [],
  };
  return { ...found, ...(problems.length > 0 && { problems }) };
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

async function readList<Item>(ask: AskPage, kind: ListKind<Item>, problems: ListProblem[]): Promise<Item[]> {
  const items = new Map<string, JsonObject>();
  const wrong: ListProblem[] = [];
  const asked = new Set<string>();
  let length = 0;
  let vain = 0;
  let cursor: string | undefined;
  const done = (): Item[] => {
    problems.push(...wrong.slice(0, maxProblems));
    return [...items.values()] as Item[];
  };
  for (let page = 0; page < maxPages; page++) {
    const answer = await ask(kind.method, cursor === undefined ? {} : { cursor }).catch(emptyWhereUnknown(kind));
    const listed = answer[kind.member];
    if (!Array.isArray(listed)) throw refused(`its ${kind.method} is no list`);
    const known = items.size;
    for (const item of listed) {
      const { key = '', fault, isKept } = judge(kind, item);
      if (fault !== undefined && !items.has(key)) wrong.push(problemOf(kind, key, fault, isKept));
      if (!isKept || items.has(key)) continue;
      length += JSON.stringify(item).length;
      if (items.size >= maxItems || length > maxLength) {
        if (kind.mayBeCut) return done();
        throw refused(`its ${kind.method} has more than can be kept`);
      }
      items.set(key, item as JsonObject);
    }
    const { nextCursor } = answer;
    vain = items.size === known ? vain + 1 : 0;
    // A server that does not advance says the same without end; one may be "", so that no cursor is an end by itself.
    if (typeof nextCursor !== 'string' || asked.has(nextCursor) || vain === maxVain) return done();
    asked.add(nextCursor);
    cursor = nextCursor;
  }
  throw refused(`its ${kind.method} has more than ${maxPages} pages`);
}
interface Judgement {
  readonly key?: string;
  readonly isKept: boolean;
  readonly fault?: string;
}

/** Whether clients can be shown an item of a list: as it is, or as `mendItem` makes it. */
function judge({ member, key: by, maxKey }: ListKind<unknown>, item: Json): Judgement {
  if (!isJsonObject(item)) return { isKept: false, fault: 'it is no object' };
  const key = textUpTo(maxKey, item[by]);
  if (key === undefined) return { isKept: false, fault: `${by} is no text of 1 to ${maxKey} characters` };
  if (isDeeperThan(item, maxNesting)) return { key, isKept: false, fault: `it nests deeper than ${maxNesting}` };
  const { item: mended, problems } = mendItem(member, item);
  if (!mended) return { key, isKept: false, fault: problems.at(-1) };
  const output = member === 'tools' ? outputFault(mended) : undefined;
  return { key, isKept: true, ...(output !== undefined && { fault: `outputSchema: ${output}` }) };
}

function problemOf({ member }: ListKind<unknown>, name: string, fault: string, isKept: boolean): ListProblem {
  const problem = storableText(fault, maxProblem);
  return { list: member, name, problem, effect: isKept ? 'mended' : 'left out' };
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
