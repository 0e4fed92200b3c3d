import { parseRequest, type JsonRpcId } from '../../protocol/jsonrpc.js';
import { parseLongJson } from '../turns.js';
import { readText } from './body.js';
import type { DoorRequest } from './http.types.js';

/**
 * Reads the id of a JSON-RPC request that fails before its body is needed; null when the id cannot be read. Only for
 * identified callers: others must not make the gateway read a body.
 */
export async function readRpcId(request: DoorRequest, maxBytes: number): Promise<JsonRpcId> {
  if (request.method !== 'POST') return null;
  try {
    const parsed = await parseLongJson(await readText(request, maxBytes));
    const envelope = parseRequest(parsed.ok ? parsed.value : null);
    return (envelope.ok ? envelope.request.id : envelope.id) ?? null;
  } catch {
    return null;
  }
}
