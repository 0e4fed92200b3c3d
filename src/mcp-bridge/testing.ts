/**
 * `rialto/testing`: the bridge's tools as plain functions, for tests that need no gateway, no database and no network.
 *
 * ```ts
 * const verbBus = createInMemoryVerbBus();
 * verbBus.subscribe((event) => events.push(event));
 * const fetcher = async () => ({ status: 200, bodyText: JSON.stringify({ jsonrpc: '2.0', id: 1, result: task }) });
 * const tool = buildA2ASkillTool({ agentRow, card, skill, verbBus, fetcher });
 * await tool.handler({ projectId: 'p1' });
 * ```
 */
import { fromJsonSchema } from '@modelcontextprotocol/server';
import type { JsonObject } from '../kernel/json.js';
import { VerbBus } from '../kernel/verb-bus.js';
import { verbError } from '../protocol/mcp/errors.js';
import { toolResult, type ToolResult } from '../protocol/mcp/tool-result.js';
import { parseAllowList } from '../platform/http/outbound/address.js';
import { SafeFetch } from '../platform/http/outbound/safe-fetch.js';
import {
  buildA2ASkillTool,
  ToolCallError,
  type AgentRow,
  type Fetcher,
  type SkillTool,
  type ToolCard,
  type ToolSkill,
} from './tools/skill-tool.js';

export { VerbBus, type VerbError, type VerbEvent, type VerbSubscriber } from '../kernel/verb-bus.js';
export { RialtoError } from '../kernel/errors.js';
export {
  buildA2ASkillTool,
  ToolCallError,
  type AgentRow,
  type Fetcher,
  type FetcherRequest,
  type SkillTool,
  type SkillToolOptions,
  type ToolCard,
  type ToolSkill,
} from './tools/skill-tool.js';

/**
 * Creates a bus without Nest, database or policy, for tests of tools: it permits a call unless a subscriber throws or
 * denies (RE-50, RE-52).
 */
export function createInMemoryVerbBus(): VerbBus {
  return new VerbBus({
    decider: () => ({ allowed: true, policies: [], reason: 'permitted: no policy engine on this bus' }),
    errorOf: verbError,
  });
}

/** An MCP server that registers tools: the official SDK's `McpServer`. */
export interface ToolRegistrar {
  registerTool: (...given: never[]) => unknown;
}

/** The used part of `registerTool`; its full type is generic over schema types of the SDK. */
type RegisterTool = (
  name: string,
  config: { title?: string; description: string; inputSchema: unknown },
  handler: (args: JsonObject) => Promise<ToolResult>,
) => unknown;

export interface RegisteredAgentCard {
  agentRow: AgentRow & { health?: string };
  card: ToolCard & { skills: ToolSkill[] };
}

export interface RegisterOptions {
  agents: readonly RegisteredAgentCard[];
  verbBus: VerbBus;
  /** Default: the safe client, with loopback allowed. */
  fetcher?: Fetcher;
  timeoutMs?: number;
  /**
   * Converts a JSON Schema to the form that the server needs; default: the form of the official SDK's `McpServer`
   * (2.x).
   */
  schemaOf?: (schema: JsonObject) => unknown;
}

const errorKey = 'dev.rialto/error';

const registered = new WeakMap<object, Set<string>>();

/**
 * Registers each skill of each agent as a tool of an MCP server, under its canonical name and its alias. Skips names
 * that the server has from an earlier call, without an error, and omits unreachable agents (RE-43…RE-46, RE-88).
 */
export function registerA2AAgentsAsMcpTools(
  server: ToolRegistrar,
  options: RegisterOptions,
): { registered: string[]; skipped: string[] } {
  const { agents, verbBus, fetcher = safeFetcher(), timeoutMs, schemaOf = fromJsonSchema } = options;
  const known = registered.get(server) ?? new Set<string>();
  registered.set(server, known);
  const register = server.registerTool.bind(server) as RegisterTool;
  const outcome = { registered: [] as string[], skipped: [] as string[] };
  for (const { agentRow, card } of agents.filter(({ agentRow: { health } }) => health !== 'unreachable')) {
    for (const skill of card.skills) {
      const tool = buildA2ASkillTool({ agentRow, card, skill, verbBus, fetcher, timeoutMs });
      for (const [name, handler] of [
        [tool.name, tool.handler],
        [tool.legacyAlias, tool.aliasHandler],
      ] as const) {
        if (known.has(name)) {
          outcome.skipped.push(name);
          continue;
        }
        known.add(name);
        outcome.registered.push(name);
        register(
          name,
          { title: skill.name, description: tool.description, inputSchema: schemaOf(tool.inputSchema) },
          answering(handler),
        );
      }
    }
  }
  return outcome;
}

/**
 * Wraps a handler so that a failure is a result with `isError`: its text begins with code and name, and `_meta` has
 * both for programs. The official server would turn a thrown error into a text without a code.
 */
function answering(handler: SkillTool['handler']): (args: JsonObject) => Promise<ToolResult> {
  return async (args) => {
    try {
      return toolResult(await handler(args ?? {}));
    } catch (thrown) {
      const { code, name, message, data } = thrown as ToolCallError;
      const text = `${code} ${name}: ${message}`;
      const _meta = { [errorKey]: { code, message, data: { ...data, name } } } as JsonObject;
      return { content: [{ type: 'text', text }], isError: true, _meta };
    }
  };
}

function safeFetcher(): Fetcher {
  const client = new SafeFetch({ allow: parseAllowList('127.0.0.0/8,::1'), httpsOnly: false });
  return async (url, { headers, body, signal }) => {
    const response = await client.request({
      method: 'POST',
      url,
      headers,
      body,
      deadlineMs: 3_600_000,
      maxBytes: 4 * 1_048_576,
      signal,
    });
    return { status: response.status, bodyText: response.body.toString('utf8') };
  };
}
