import type { JsonObject } from '../kernel/json.js';
import type { ToolResult } from '../protocol/mcp/tool-result.js';
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
  /** A call of the tool of an MCP server may go on as a task of ours: its caller can ask for that again. */
  readonly mayGoOn: boolean;
}

/** What a call gave. */
export interface ToolOutcome {
  readonly result: ToolResult | JsonObject;
  /** The task of ours that goes on, when the result is not the end of it. */
  readonly goesOnAs?: string;
}
