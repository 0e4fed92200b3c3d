import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';

/** Facts about an MCP server, as far as agents see them. */
export interface ServerFacts {
  readonly id: string;
  readonly name: string;
  readonly transport: string;
  readonly status: string;
  readonly error: string | null;
  /** ISO 8601. */
  readonly connectedAt: string | null;
  readonly lastPingMs: number | null;
  readonly mcpVersion: string;
  readonly serverName: string;
  readonly serverVersion: string;
  /** Tools with a `quarantine` cannot be called. */
  readonly tools: readonly { readonly name: string; readonly toolName: string; readonly quarantine?: object }[];
  readonly counts: { readonly resources: number; readonly prompts: number };
}

/** Encodes the facts of a server (AE-58). `connected_at` is in seconds since the epoch, as `ts` is. */
export function serverInfo(server: ServerFacts): JsonObject & { readonly server_id: string } {
  const { counts, connectedAt } = server;
  const tools = server.tools.filter(({ quarantine }) => !quarantine);
  return {
    server_id: server.id,
    name: server.name,
    transport: server.transport,
    status: server.status,
    mcp_version: server.mcpVersion,
    server_name: server.serverName,
    server_version: server.serverVersion,
    tool_count: tools.length,
    resource_count: counts.resources,
    prompt_count: counts.prompts,
    last_ping_ms: server.lastPingMs,
    error: server.error,
    connected_at: connectedAt === null ? null : Date.parse(connectedAt) / 1_000,
    tools: tools.map(({ name, toolName }) => ({ name, tool_name: toolName })),
  };
}

/** Encodes a tool with everything that its caller needs. */
export function toolShape(canonical: string, tool: JsonObject): JsonObject {
  return {
    name: tool.name!,
    tool_name: canonical,
    description: textOr(null, tool.description),
    input_schema: isJsonObject(tool.inputSchema) ? tool.inputSchema : {},
    annotations: isJsonObject(tool.annotations) ? tool.annotations : {},
  };
}

/** Encodes a resource (AE-25): always with the same members, even when its server left some out. */
export function resourceShape(serverId: string, resource: JsonObject & { readonly uri: string }): JsonObject {
  return {
    uri: resource.uri,
    name: textOr(resource.uri, resource.name),
    description: textOr(null, resource.description),
    mime_type: textOr(null, resource.mimeType),
    server_id: serverId,
    annotations: isJsonObject(resource.annotations) ? resource.annotations : {},
  };
}

/** Encodes the content of a resource: text, or a blob in base64. */
export function contentShape(content: Json): Json {
  if (!isJsonObject(content)) return content;
  const { mimeType, ...others } = content;
  return { ...others, ...(mimeType !== undefined && { mime_type: mimeType }) };
}

/** Encodes a prompt with its name at the server and its canonical name. */
export function promptShape(serverId: string, canonical: string, prompt: JsonObject): JsonObject {
  return {
    name: prompt.name!,
    prompt_name: canonical,
    description: textOr(null, prompt.description),
    server_id: serverId,
    arguments: Array.isArray(prompt.arguments) ? prompt.arguments : [],
  };
}

/**
 * Encodes the MCP result of a tool, together with the parts that most callers need: its text, its images, and whether
 * it succeeded (AE-68).
 */
export function toolOutcome(result: JsonObject): JsonObject {
  const parts = (Array.isArray(result.content) ? result.content : []).filter(isJsonObject);
  const images = parts.filter(({ type }) => type === 'image');
  return {
    success: result.isError !== true,
    text: parts.flatMap(({ type, text }) => (type === 'text' && typeof text === 'string' ? [text] : [])).join('\n'),
    images: images.map(({ data, mimeType }) => ({ data: data ?? '', mime_type: mimeType ?? '' })),
    result,
  };
}

function textOr(absent: string | null, value: Json | undefined): string | null {
  return typeof value === 'string' ? value : absent;
}
