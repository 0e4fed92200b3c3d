import { z } from 'zod';
import type { JsonObject } from '../../kernel/json.js';
import { Quarantine, strategies } from '../../upstreams/upstream.types.js';

const Name = z.string().min(1).max(256);

/** A tool of the org, whoever has it. */
export const ToolView = z.object({
  /** By which policies and the audit know it. */
  name: z.string(),
  /** For clients that cannot take the other one. */
  alias: z.string(),
  /** The MCP server, or the agent, that has it, and what it is called there. */
  server: z.string().nullable(),
  agent: z.string().nullable(),
  own: z.string(),
  /** Present for a tool of an MCP server that is neither listed to clients nor called. */
  quarantine: Quarantine.optional(),
  /** The definition of MCP, as `tools/list` shows it. */
  tool: z.looseObject({ name: z.string() }),
});
export type ToolView = z.output<typeof ToolView>;

export const ToolQuery = z.strictObject({
  /** By either of its names, or by what it is called where it is: who has it. */
  name: Name.optional(),
  server: Name.optional(),
  agent: Name.optional(),
  /** In its name, title or description. */
  q: z.string().min(1).max(200).optional(),
  /** `true`: those that wait for approval, in place of the others. */
  quarantined: z.enum(['true', 'false']).default('false'),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(1_000).optional(),
});
export type ToolQuery = z.output<typeof ToolQuery>;

export const CallTool = z.strictObject({
  name: Name,
  arguments: (z.record(z.string(), z.unknown()) as unknown as z.ZodType<JsonObject>).default({}),
  /** Whom to ask of several MCP servers that call a tool so; by default the first. */
  strategy: z.enum(strategies).optional(),
});
export type CallTool = z.output<typeof CallTool>;

/** A result of MCP, and the canonical name of the tool that gave it. */
export const CalledTool = z.object({ name: z.string(), result: z.looseObject({}) });
export type CalledTool = z.output<typeof CalledTool>;
