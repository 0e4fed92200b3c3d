import { hash, randomBytes } from 'node:crypto';
import type { Principal } from '../../kernel/call-context.js';

export const apiKeyPrefix = 'rlt_';

export function newApiKey(): string {
  return `${apiKeyPrefix}${randomBytes(32).toString('base64url')}`;
}

/** Returns the stored form of an API key. */
export function hashKey(key: string): string {
  return hash('sha256', key, 'hex');
}

/**
 * Returns the principal of an API key: the agent that the key was made for, else a service with the name of the key.
 */
export function holderOf({ agent, name }: { agent: string | null; name: string }): Pick<Principal, 'kind' | 'id'> {
  return { kind: agent ? 'agent' : 'service', id: agent ?? name };
}
