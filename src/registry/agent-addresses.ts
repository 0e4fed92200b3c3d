import type { JsonObject } from '../kernel/json.js';
import type { RegisteredAgent } from './registry.types.js';

/** Returns what tells a registered agent from another one that gets its slug later, and from itself elsewhere. */
export function addressesOf({ row: { id, url }, card }: RegisteredAgent): JsonObject {
  return { id, url, endpoints: card?.interfaces.map((one) => one.url) ?? [] };
}
