import type { JsonObject } from '../../kernel/json.js';
import type { ToolResult } from '../../protocol/mcp/tool-result.js';
import type { NameMode } from './tool-catalogue.js';

/** What a request to the MCP door may ask of the list: `?names=`, `?agents=` and `?servers=`; of the two either names whose tools it wants. */
export interface ListOptions {
  readonly names?: NameMode;
  readonly agents?: ReadonlySet<string>;
  readonly servers?: ReadonlySet<string>;
  /** The one MCP server there is, by its own names (`/mcp/servers/{id}`). */
  readonly only?: string;
}

export interface ToolCall {
  readonly name: string;
  readonly args: JsonObject;
}

export interface CallOptions {
  /** The one MCP server there is. */
  readonly only?: string;
  /** After so many milliseconds a call that its MCP server has a task for goes on as a task of ours. Absent: its caller could not ask for that. */
  readonly goesOnAfterMs?: number;
}

/** Who takes a task in place of a result has it soon: it is durable, where a connection is not. */
export const soonMs = 1_000;
/** The official SDKs give up a request after a minute: who would ask with `task_status` hears of the task before. */
export const beforeCallersLeaveMs = 50_000;

/** What a call gave. */
export interface ToolOutcome {
  readonly result: ToolResult | JsonObject;
  /** The task of ours that goes on, when the result is not the end of it. */
  readonly goesOnAs?: string;
}
