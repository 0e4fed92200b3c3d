import type { JsonObject } from '../../kernel/json.js';

/** Transport and credential of the client. The client reads no environment variables. */
export interface A2EClientOptions {
  /** Bearer token or API key of the gateway. */
  token: string;
  /** `websocket` by default. With `post` the client receives no pushes and no questions. */
  transport?: 'websocket' | 'post';
  /** Default timeout of one request, in milliseconds; 10,000 by default. */
  timeoutMs?: number;
}

/** Limits for the wait for one reply. */
export interface RequestOptions {
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** Server to register: a URL or a program. `timeout` is in seconds. */
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

/** A server as the gateway describes it. */
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
  /** Tools with the name at the server and the name in policies of the gateway. */
  tools: { name: string; tool_name: string }[];
}

/** Tool with the facts that a model needs. */
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

/** Result of a tool call. */
export interface ToolReply {
  tool: string;
  server_id: string;
  /** False when the tool itself failed: `text` has the reason. */
  success: boolean;
  text: string;
  images: { data: string; mime_type: string }[];
  /** Unchanged result of MCP. */
  result: JsonObject;
}

/** Calls tools instead of the client, by their names in policies of the gateway: for example an MCP client. */
export interface ToolApi<Result> {
  callTool(name: string, args: JsonObject): Promise<Result>;
}

/** Notification of a server, or a change of the servers. */
export interface Push {
  server_id: string | null;
  method: string;
  params: JsonObject;
}

/** Question of a server; `params` as in MCP. */
export interface Question {
  server_id: string | null;
  params: JsonObject;
}

/** Returns the result in the format of MCP, or throws to refuse. */
export type Answerer = (question: Question) => Promise<JsonObject> | JsonObject;
