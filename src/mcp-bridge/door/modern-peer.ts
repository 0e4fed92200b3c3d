import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import { askableOf } from './legacy-peers.js';
import { isToken, type RelayProgress } from './progress.js';
import { metaKeys } from '../../protocol/mcp/meta.js';

/**
 * Returns the client of one request of the 2026-07-28 revision: it gets notifications on the stream of the request,
 * and questions in its result.
 */
export function modernPeer(
  params: JsonObject,
  headers: Peer['headers'],
  notify: (method: string, params: JsonObject) => void,
  relay: RelayProgress,
): Peer {
  const meta = isJsonObject(params._meta) ? params._meta : {};
  const { progressToken, [metaKeys.logLevel]: logLevel, [metaKeys.clientCapabilities]: capabilities } = meta;
  return {
    key: newId(),
    era: 'modern',
    wantsAlone: logLevel !== undefined,
    capabilities: askableOf(capabilities),
    ...(typeof logLevel === 'string' && { logLevel }),
    ...(isToken(progressToken) && { progressToken }),
    headers,
    answers: answersIn(params),
    ask: () =>
      Promise.reject(new RialtoError('unavailable', { message: 'this client gets questions only in results' })),
    tell: (method, notification) =>
      method === 'notifications/progress' ? relay(notification) : notify(method, notification),
  };
}

function answersIn({ inputResponses, requestState }: JsonObject): JsonObject {
  return {
    ...(inputResponses !== undefined && { inputResponses }),
    ...(requestState !== undefined && { requestState }),
  };
}
