import type { McpServerEntity } from './storage/mcp-server.entity.js';
import type {
  ListProblem,
  OfferedPrompt,
  OfferedResource,
  OfferedTemplate,
  OfferedTool,
  Quarantine,
} from './upstream.types.js';

/** A tool of an MCP server, as it may be called. */
export interface UpstreamTool {
  readonly server: RegisteredServer;
  /** `<serverId>__<tool>`: what policies, events and the audit call it. */
  readonly canonical: string;
  /** As its server says it, without what clients could not read. */
  readonly tool: OfferedTool;
  /** Present for one that is shown to no client and called for nobody. */
  readonly quarantine?: Quarantine;
}

export interface UpstreamPrompt {
  readonly server: RegisteredServer;
  /** `<serverId>__<prompt>`. */
  readonly canonical: string;
  readonly prompt: OfferedPrompt;
}

/** An MCP server, and of what it has that which its allow lists let through. */
export interface RegisteredServer {
  readonly row: McpServerEntity;
  readonly tools: readonly UpstreamTool[];
  readonly resources: readonly OfferedResource[];
  readonly templates: readonly OfferedTemplate[];
  readonly prompts: readonly UpstreamPrompt[];
  /** What clients could not have read of its lists. */
  readonly problems: readonly ListProblem[];
}
