import type { McpServerEntity } from './storage/mcp-server.entity.js';
import type {
  ListProblem,
  OfferedPrompt,
  OfferedResource,
  OfferedTemplate,
  OfferedTool,
  Quarantine,
} from './upstream.types.js';

/** Callable tool of an MCP server. */
export interface UpstreamTool {
  readonly server: RegisteredServer;
  /** `<serverId>__<tool>`: its name in policies, events and the audit. */
  readonly canonical: string;
  /** The tool as its server describes it, without members that clients could not read. */
  readonly tool: OfferedTool;
  /** Present when the tool is in quarantine: it is hidden from clients and cannot be called. */
  readonly quarantine?: Quarantine;
}

export interface UpstreamPrompt {
  readonly server: RegisteredServer;
  /** `<serverId>__<prompt>`. */
  readonly canonical: string;
  readonly prompt: OfferedPrompt;
}

/** MCP server with those of its tools, resources and prompts that its allow lists permit. */
export interface RegisteredServer {
  readonly row: McpServerEntity;
  readonly tools: readonly UpstreamTool[];
  readonly resources: readonly OfferedResource[];
  readonly templates: readonly OfferedTemplate[];
  readonly prompts: readonly UpstreamPrompt[];
  /** Items of its lists that clients could not read. */
  readonly problems: readonly ListProblem[];
}
