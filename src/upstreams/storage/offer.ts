import { isJsonObject, storableText, weightOf, type Json, type JsonObject } from '../../kernel/json.js';
import { RialtoError } from '../../kernel/errors.js';
import { mendItem, outputFault, type ItemList } from '../../protocol/mcp/list-items.js';
import { isDeeperThan } from '../../protocol/mcp/schema/schema-size.js';
import { eachInTurns } from '../../platform/jobs/in-turns.js';
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
/**
 * Maximum number of characters in the members that describe a server. They are written with each result of its door,
 * and with each of its offers.
 */
const maxDescription = 262_144;
const maxName = 256;
const maxUri = 2_048;
/** Maximum number of reported problems of one list. */
const maxProblems = 50;
const maxProblem = 300;
/** Maximum number of pages in a row without a new item. */
const maxIdlePages = 3;
const methodNotFound = -32_601;

/** Offer of a server that was not read yet. */
export const nothingYet: Offer = {
  protocolVersion: '',
  serverInfo: {},
  capabilities: {},
  tools: [],
  resources: [],
  templates: [],
  prompts: [],
};

/** Requests one page of a list from the server. */
export type AskPage = (method: string, params: JsonObject) => Promise<JsonObject>;

interface ListKind<Item> {
  readonly method: string;
  readonly member: ItemList;
  /** Member that identifies an item, and its maximum length. */
  readonly key: 'name' | 'uri' | 'uriTemplate';
  readonly maxKey: number;
  /** Whether the list may be cut at the maximum: a client can still read the other items by URI. */
  readonly mayBeCut?: boolean;
  /** Whether a server with this capability may not implement the method. */
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
 * Reads all lists of a server, page by page, without changes. Drops items that clients could not read and reports them
 * in `problems`; drops the second of two items with one name. A list that the server refuses is absent; only refused
 * tools fail. Throws `remote_invalid_response` for a malformed list, or one that is too large to store.
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

/** Throws `remote_invalid_response` when a server describes itself in more text than can be stored at once. */
export function requireShort(description: Pick<FoundOffer, 'serverInfo' | 'capabilities' | 'instructions'>): void {
  if (weightOf(description, maxDescription) < maxDescription) return;
  throw unusableServer(`serverInfo, capabilities and instructions have more than ${maxDescription} characters`);
}

/** Fills lists that the server refused with the known items. Pure. */
export function completed(found: FoundOffer, known: Offer): Offer {
  const { resources = known.resources, templates = known.templates, prompts = known.prompts } = found;
  return { ...found, resources, templates, prompts };
}

/** Ignores a refused list: a server with broken prompts still has tools. */
function unlessRefused<Item>(list: Promise<Item[]>): Promise<Item[] | undefined> {
  return list.catch((thrown: unknown) => {
    if (RialtoError.from(thrown).code === 'remote_error') return undefined;
    throw thrown;
  });
}

async function readList<Item>(ask: AskPage, kind: ListKind<Item>, problems: ListProblem[]): Promise<Item[]> {
  const items = new Map<string, JsonObject>();
  const faults: ListProblem[] = [];
  const cursors = new Set<string>();
  let length = 0;
  let idlePages = 0;
  let cursor: string | undefined;
  const done = (): Item[] => {
    problems.push(...faults.slice(0, maxProblems));
    return [...items.values()] as Item[];
  };
  for (let page = 0; page < maxPages; page++) {
    const answer = await ask(kind.method, cursor === undefined ? {} : { cursor }).catch(emptyWhereUnknown(kind));
    const listed = answer[kind.member];
    if (!Array.isArray(listed)) throw unusableServer(`the result of ${kind.method} has no list "${kind.member}"`);
    const known = items.size;
    const judged = await eachInTurns(listed, (item) => ({ item, ...judge(kind, item) }));
    for (const { item, key = '', fault, isKept } of judged) {
      if (fault !== undefined && !items.has(key)) faults.push(problemOf(kind, key, fault, isKept));
      if (!isKept || items.has(key)) continue;
      length += JSON.stringify(item).length;
      if (items.size >= maxItems || length > maxLength) {
        if (kind.mayBeCut) return done();
        throw unusableServer(`${kind.method} has more than ${maxItems} items or ${maxLength} characters`);
      }
      items.set(key, item as JsonObject);
    }
    const { nextCursor } = answer;
    idlePages = items.size === known ? idlePages + 1 : 0;
    // A server with a broken cursor repeats it endlessly. An empty cursor is valid and does not end the list by itself.
    if (typeof nextCursor !== 'string' || cursors.has(nextCursor) || idlePages === maxIdlePages) return done();
    cursors.add(nextCursor);
    cursor = nextCursor;
  }
  throw unusableServer(`${kind.method} has more than ${maxPages} pages`);
}
interface Judgement {
  readonly key?: string;
  readonly isKept: boolean;
  readonly fault?: string;
}

/** Returns whether clients can read an item of a list, unchanged or after `mendItem`. */
function judge({ member, key: by, maxKey }: ListKind<unknown>, item: Json): Judgement {
  if (!isJsonObject(item)) return { isKept: false, fault: 'it is not an object' };
  const key = textUpTo(maxKey, item[by]);
  if (key === undefined) return { isKept: false, fault: `${by} is not a text of 1 to ${maxKey} characters` };
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

/** A server of the 2026-07-28 revision reports an unknown method with HTTP 404. */
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

function unusableServer(message: string): RialtoError {
  return new RialtoError('remote_invalid_response', { message: `the MCP server cannot be used: ${message}` });
}
