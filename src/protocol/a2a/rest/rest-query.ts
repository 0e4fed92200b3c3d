import type { Json, JsonObject } from '../../../kernel/json.js';

type Kind = 'text' | 'integer' | 'flag';

// Every member that a GET or DELETE may carry (v1.0 section 11.5), with its type; none is a list.
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
 * A query string as the params it spells: names in camelCase or snake_case, `true` and `false`, decimal numbers, times and enums as
 * text. What is none of its type stays text, for the reader of the operation to refuse. Of a repeated name the last counts, as in
 * ProtoJSON; an empty value is an absent one; unknown names are left out.
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
