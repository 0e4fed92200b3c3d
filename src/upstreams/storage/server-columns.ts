import type { McpServerEntity } from './mcp-server.entity.js';
import type { RegisterServer } from '../upstream.types.js';

/** In milliseconds (AE-23). */
const defaultTimeoutMs = 300_000;

type Columns = Pick<
  McpServerEntity,
  | 'userCredentials'
  | 'userHeaders'
  | 'timeoutMs'
  | 'autoReconnect'
  | 'toolAllowList'
  | 'resourceAllowList'
  | 'roots'
  | 'callsPerMinute'
  | 'toolChanges'
  | 'era'
>;

/** Returns the columns of the settings of a server, with the defaults. */
export function columnsOf(given: RegisterServer): Columns {
  return {
    userCredentials: given.userCredentials ?? 'none',
    userHeaders: given.userHeaders ?? ['Authorization'],
    timeoutMs: given.timeoutMs ?? defaultTimeoutMs,
    autoReconnect: given.autoReconnect ?? true,
    toolAllowList: given.toolAllowList ?? [],
    resourceAllowList: given.resourceAllowList ?? [],
    roots: given.roots ?? [],
    callsPerMinute: given.callsPerMinute ?? null,
    toolChanges: given.toolChanges ?? 'hold-changed',
    era: given.era ?? 'auto',
  };
}
