import { z } from 'zod';
import type { JsonObject } from '../../kernel/json.js';
import { Quarantine, strategies } from '../../upstreams/upstream.types.js';

const Name = z.string().min(1).max(256);

/** A tool of the org, of an agent or an MCP server. */
export const ToolView = z.object({
  /** Canonical name, used in policies and in the audit. */
  name: z.string(),
  /** Alias for clients that do not accept the canonical name. */
  alias: z.string(),
  /** The MCP server or the agent of the tool, and the name that it uses for the tool. */
  server: z.string().nullable(),
  agent: z.string().nullable(),
  own: z.string(),
  /** Set for a tool of an MCP server that is neither listed to clients nor called. */
  quarantine: Quarantine.optional(),
  /** The MCP definition, as `tools/list` shows it. */
  tool: z.looseObject({ name: z.string() }),
});
export type ToolView = z.output<typeof ToolView>;

export const ToolQuery = z.strictObject({
  /** One of its two names, or the name that its server or agent uses. */
  name: Name.optional(),
  server: Name.optional(),
  agent: Name.optional(),
  /** Text that the name, title or description contains. */
  q: z.string().min(1).max(200).optional(),
  /** `true` lists the tools that wait for approval instead of the others. */
  quarantined: z.enum(['true', 'false']).default('false'),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(1_000).optional(),
});
export type ToolQuery = z.output<typeof ToolQuery>;

export const CallTool = z.strictObject({
  name: Name,
  arguments: (z.record(z.string(), z.unknown()) as unknown as z.ZodType<JsonObject>).default({}),
  /** Selects one of several MCP servers that have a tool of this name; the first by default. */
  strategy: z.enum(strategies).optional(),
});
export type CallTool = z.output<typeof CallTool>;

/** A result of MCP, and the canonical name of the called tool. */
export const CalledTool = z.object({ name: z.string(), result: z.looseObject({}) });
export type CalledTool = z.output<typeof CalledTool>;
