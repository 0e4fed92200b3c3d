import type { Json, JsonObject } from '../../../kernel/json.js';

type Kind = 'text' | 'integer' | 'flag';

// All members that a GET or DELETE may have (v1.0 section 11.5), with their types; no member is a list.
const members: Readonly<Record<string, Kind>> = {
  tenant: 'text',
  contextId: 'text',
  status: 'text',
  pageSize: 'integer',
  pageToken: 'text',
  historyLength: 'integer',
  statusTimestampAfter: 'text',
  includeArtifacts: 'flag',
};

const names = new Map<string, string>(
  Object.keys(members).flatMap((name) => [
    [name, name],
    [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), name],
  ]),
);

/**
 * Converts a query string to params: names in camelCase or snake_case, `true` and `false`, decimal numbers; times and
 * enums as text. A value that does not match its type stays text, and the reader of the operation refuses it. The last
 * value of a repeated name counts, as in ProtoJSON; empty values count as absent; unknown names are ignored.
 */
export function queryParams(query: URLSearchParams): JsonObject {
  const params: JsonObject = {};
  for (const [spelled, text] of query) {
    const name = names.get(spelled);
    if (name !== undefined && text !== '') params[name] = valueOf(text, members[name]!);
  }
  return params;
}

function valueOf(text: string, kind: Kind): Json {
  if (kind === 'integer' && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (kind === 'flag' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}
