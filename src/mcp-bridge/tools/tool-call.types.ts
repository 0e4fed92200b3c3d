import type { JsonObject } from '../../kernel/json.js';
import type { ToolResult } from '../../protocol/mcp/tool-result.js';
import type { NameMode } from './tool-catalogue.js';

/**
 * List options of a request to the MCP door: `?names=`, `?agents=` and `?servers=`. The last two filter the tools by
 * their owner.
 */
export interface ListOptions {
  readonly names?: NameMode;
  readonly agents?: ReadonlySet<string>;
  readonly servers?: ReadonlySet<string>;
  /** Id of the only MCP server of the door, listed by its own names (`/mcp/servers/{id}`). */
  readonly only?: string;
}

export interface ToolCall {
  readonly name: string;
  readonly args: JsonObject;
}

export interface CallOptions {
  /** Id of the only MCP server of the door. */
  readonly only?: string;
  /** True when the caller takes a task instead of a result that is not ready in time. */
  readonly takesTasks?: boolean;
  /** True for the REST API, which does not have the tools of the gateway itself. */
  readonly isRest?: boolean;
}

/**
 * Milliseconds before a client that takes tasks gets one: early, because a task is durable and a connection is not.
 */
export const soonMs = 1_000;
/**
 * Milliseconds before other clients get a task: the official SDKs end a request after one minute, and the client must
 * learn the task before that, to ask with `task_status`.
 */
export const beforeCallersLeaveMs = 50_000;

/** The outcome of a call. */
export interface ToolOutcome {
  readonly result: ToolResult | JsonObject;
  /** Id of the gateway's task that continues, when the result is not final. */
  readonly goesOnAs?: string;
}
