import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import { parseExact } from '../../protocol/exact-integers.js';
import { metaKeys } from '../../protocol/mcp/meta.js';
import type { Page } from '../tools/list-page.js';
import type { ServerDescription } from './server-description.js';
import { stringifyLong } from '../../platform/turns.js';

/** Result of a request: an object, or a page of a list with its items as JSON texts. */
export type McpResult =
  | { readonly kind: 'value'; readonly value: object }
  | { readonly kind: 'page'; readonly list: string; readonly page: Page };

/** Clients may not cache lists, because they depend on the caller. */
const caching = { ttlMs: 0, cacheScope: 'private' };

/** Returns the JSON text of a result for a client of the 2025 era. */
export function legacyText(result: McpResult): string | Promise<string> {
  return result.kind === 'value' ? stringifyLong(result.value) : listText(result, {});
}

/** Returns the JSON text of a result in the 2026-07-28 revision. A result without a type is a complete one. */
export function modernText(
  result: McpResult,
  { serverInfo }: Pick<ServerDescription, 'serverInfo'>,
): string | Promise<string> {
  const resultType = 'complete';
  const gatewayMeta = { [metaKeys.serverInfo]: serverInfo };
  if (result.kind === 'page') return listText(result, { ...caching, resultType, _meta: gatewayMeta });
  const { _meta, ...rest } = result.value as JsonObject;
  const type = typeof rest.resultType === 'string' ? {} : { resultType };
  return stringifyLong({ ...rest, ...type, _meta: { ...(isJsonObject(_meta) && _meta), ...gatewayMeta } });
}

/** Returns a result as an object, for the SDK. */
export function resultObject(result: McpResult): object {
  return result.kind === 'value' ? result.value : (parseExact(listText(result, {})) as object);
}

/**
 * Writes a page around the texts of its items. The texts are stored with the catalogue; to parse and write the items
 * again for each list takes 5 to 11 times as long, and objects that are kept beside them still take twice as long.
 */
function listText({ list, page }: Extract<McpResult, { kind: 'page' }>, more: JsonObject): string {
  const { texts, nextCursor } = page;
  const members = JSON.stringify({ nextCursor, ...more }).slice(1);
  return `{"${list}":[${texts.join(',')}]${members === '}' ? '' : ','}${members}`;
}
