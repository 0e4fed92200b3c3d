import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';

/** The result of tools/call (MCP server/tools); `structuredContent` is an object in every revision. */
export interface ToolResult {
  content: { type: 'text'; text: string }[];
  structuredContent?: JsonObject;
  isError?: boolean;
  _meta?: JsonObject;
}

/**
 * Converts the output of a skill to a tool result without loss (RE-21…RE-23): a string unchanged, anything else as its
 * JSON text, an object also as `structuredContent`. `meta` is passed on as `_meta`.
 */
export function toolResult(output: Json, meta?: JsonObject): ToolResult {
  const text = typeof output === 'string' ? output : JSON.stringify(output);
  return {
    content: [{ type: 'text', text }],
    ...(isJsonObject(output) && { structuredContent: output }),
    ...(meta && { _meta: meta }),
  };
}

/**
 * Builds the result for arguments that break the tool's schema: an error that the model can read and correct (RE-12).
 */
export function invalidArguments(violations: readonly { field: string; description: string }[]): ToolResult {
  const lines = violations.map(({ field, description }) => `- ${field === '' ? 'arguments' : field}: ${description}`);
  return { content: [{ type: 'text', text: ['Invalid arguments', ...lines].join('\n') }], isError: true };
}
