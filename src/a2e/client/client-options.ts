import type { JsonObject } from '../../kernel/json.js';

/** How the client reaches the gateway, and proves itself. Nothing is read from the environment. */
export interface A2EClientOptions {
  /** A bearer token or API key of the gateway. */
  token: string;
  /** `websocket` by default; `post` alone hears and is asked nothing. */
  transport?: 'websocket' | 'post';
  /** Deadline of one request that does not say, 10,000 ms by default. */
  timeoutMs?: number;
}

/** How long to wait for a reply, and until when. */
export interface RequestOptions {
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** Of a server to register: an address, or a program. `timeout` is in seconds. */
export interface ServerConfig {
  server_id?: string;
  name?: string;
  transport?: string;
  url?: string;
  headers?: Record<string, string>;
  cmd?: string | string[];
  args?: string[];
  cwd?: string;
  env?: Record<string, string>;
  timeout?: number;
  auto_reconnect?: boolean;
  tool_allow_list?: string[];
  resource_allow_list?: string[];
  roots?: { uri: string; name?: string }[];
}

/** What the gateway says of a server. */
export interface ServerInfo {
  server_id: string;
  name: string;
  status: 'connecting' | 'ready' | 'error' | 'disconnected';
  mcp_version: string;
  server_name: string;
  server_version: string;
  tool_count: number;
  resource_count: number;
  prompt_count: number;
  last_ping_ms: number | null;
  error: string | null;
  /** Seconds since the epoch. */
  connected_at: number | null;
  /** By the name that the server has for each, and the one that the gateway's policies have. */
  tools: { name: string; tool_name: string }[];
}

/** A tool with what a model has to know of it. */
export interface ToolInfo {
  name: string;
  tool_name: string;
  description: string | null;
  input_schema: JsonObject;
  annotations: JsonObject;
}

export interface ResourceInfo {
  uri: string;
  name: string;
  description: string | null;
  mime_type: string | null;
  server_id: string;
  annotations: JsonObject;
}

export interface PromptInfo {
  name: string;
  prompt_name: string;
  description: string | null;
  server_id: string;
  arguments: JsonObject[];
}

/** What a tool gave. */
export interface ToolReply {
  tool: string;
  server_id: string;
  /** False where the tool itself failed: its text says why. */
  success: boolean;
  text: string;
  images: { data: string; mime_type: string }[];
  /** As MCP says it. */
  result: JsonObject;
}

/** Calls a tool in place of the client, by the name that the gateway's policies have for it: an MCP client, for instance. */
export interface ToolApi<Result> {
  callTool(name: string, args: JsonObject): Promise<Result>;
}

/** What a server says, or what changed. */
export interface Push {
  server_id: string | null;
  method: string;
  params: JsonObject;
}

/** What a server wants to know; `params` as MCP says them. */
export interface Question {
  server_id: string | null;
  params: JsonObject;
}

/** Gives the result of MCP, or throws to refuse. */
export type Answerer = (question: Question) => Promise<JsonObject> | JsonObject;
