import { parseExact } from '../../protocol/exact-integers.js';
import { RialtoError, type ErrorCode } from '../../kernel/errors.js';
import { newId, type OrgId } from '../../kernel/ids.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import { systemClock } from '../../kernel/clock.js';
import type { VerbBus } from '../../kernel/verb-bus.js';
import { decodeBridgeReply, encodeBridgeCall, toolOutput } from '../../protocol/a2a/remote/bridge-call.js';
import { takesText } from '../../protocol/a2a/remote/skill-input.js';
import { parseJson } from '../../protocol/jsonrpc.js';
import { mcpError } from '../../protocol/mcp/errors.js';
import { canonicalName, safeAlias, slugOf } from '../../protocol/mcp/tool-names.js';
import { compileToolSchema, listedSchema } from '../../protocol/mcp/schema/tool-schema.js';

/** One request of a fetcher: a POST with a deadline. */
export interface FetcherRequest {
  method: 'POST';
  headers: Record<string, string>;
  body: string;
  /** Aborts at the timeout. The fetcher may reject then or later; the call has already ended. */
  signal: AbortSignal;
}

/** Sends the request of a tool to its agent; injected, so that a test needs no network (RE-51). */
export type Fetcher = (url: string, request: FetcherRequest) => Promise<{ status: number; bodyText: string }>;

/** The columns of a registered agent that a tool needs. */
export interface AgentRow {
  id: string;
  orgId: string;
  agentUrl: string;
}

/** A card as an agent publishes it; only its name and its input modes are read. */
export interface ToolCard {
  name: string;
  defaultInputModes?: string[];
  [member: string]: unknown;
}

export interface ToolSkill {
  id: string;
  name?: string;
  description?: string;
  inputSchema?: JsonObject;
  inputModes?: string[];
  [member: string]: unknown;
}

export interface SkillToolOptions {
  agentRow: AgentRow;
  card: ToolCard;
  skill: ToolSkill;
  verbBus: VerbBus;
  fetcher: Fetcher;
  /** Limit of one call in milliseconds of wall-clock time; 30,000 by default (RE-25). */
  timeoutMs?: number;
}

/** One skill of one agent as an MCP tool. */
export interface SkillTool {
  readonly name: string;
  readonly legacyAlias: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  /** Calls the skill: resolves with the output (RE-21…RE-23), rejects with a ToolCallError (RE-24…RE-30). */
  readonly handler: (args?: JsonObject) => Promise<Json>;
  /** Calls the skill by its alias: events still name the canonical verb (RE-09). */
  readonly aliasHandler: (args?: JsonObject) => Promise<Json>;
}

/**
 * A failed call: `code` and `name` are those of the MCP API (RE-24…RE-30), `reason` is the error code of the gateway.
 */
export class ToolCallError extends Error {
  readonly code: number;
  readonly reason: ErrorCode;
  readonly data: Record<string, unknown>;

  constructor(cause: unknown) {
    const { code, message, data } = mcpError(cause);
    super(message, { cause });
    this.name = typeof data.name === 'string' ? data.name : 'ToolCallError';
    this.code = code;
    this.reason = RialtoError.from(cause).code;
    this.data = data;
  }
}

const defaultTimeoutMs = 30_000;
let lastRequestId = 0;

/**
 * Builds a tool from a skill without a registry, a database or Nest, with the same wire form, error codes and events
 * as the gateway's own bridge (RE-50). The bus decides, and the fetcher sends the only request.
 */
export function buildA2ASkillTool({
  agentRow,
  card,
  skill,
  verbBus,
  fetcher,
  timeoutMs = defaultTimeoutMs,
}: SkillToolOptions): SkillTool {
  const slug = slugOf(card.name);
  const name = canonicalName(slug, skill.id);
  const legacyAlias = safeAlias(slug, skill.id);
  const asText = takesText(skill, card.defaultInputModes);
  const described = skill.description ? `\n\n${skill.description}` : '';
  const call = (args: JsonObject, calledAs: string): Promise<Json> => {
    const sessionId = `a2a-${agentRow.id}-${skill.id}-${newId()}`;
    const act = {
      verb: name,
      action: 'a2a_invoke' as const,
      resource: { type: 'Skill' as const, id: name, parent: slug },
      ctx: toolContext(agentRow.orgId),
      legacyAlias,
      calledAs,
      agent: { id: agentRow.id, slug, url: agentRow.agentUrl },
      skillId: skill.id,
      sessionId,
      args,
      timeoutMs,
    };
    return verbBus.around(act, () =>
      send(fetcher, agentRow.agentUrl, { skillId: skill.id, args, takesText: asText, sessionId, timeoutMs }),
    );
  };
  const handle =
    (calledAs: string) =>
    (args: JsonObject = {}) => {
      const schema = compileToolSchema(skill.inputSchema);
      const violations = schema.ok ? schema.validate(args) : [];
      const refusal = violations.length > 0 && new RialtoError('invalid_params', { violations });
      const done = refusal ? Promise.reject(refusal) : call(args, calledAs);
      return done.catch((error: unknown) => Promise.reject(new ToolCallError(error)));
    };
  return {
    name,
    legacyAlias,
    description: `Invokes the ${skill.id} skill on remote A2A agent ${card.name}${described}`,
    inputSchema: listedSchema(skill.inputSchema, asText),
    handler: handle(name),
    aliasHandler: handle(legacyAlias),
  };
}

interface Sending {
  skillId: string;
  args: JsonObject;
  takesText: boolean;
  sessionId: string;
  timeoutMs: number;
}

async function send(
  fetcher: Fetcher,
  url: string,
  { skillId, args, takesText, sessionId, timeoutMs }: Sending,
): Promise<Json> {
  const requestId = (lastRequestId = Math.max(systemClock.now(), lastRequestId + 1));
  const { body, headers } = encodeBridgeCall({
    version: '0.3',
    requestId,
    messageId: newId(),
    skillId,
    args,
    takesText,
    sessionId,
  });
  const { status, bodyText } = await runWithin(timeoutMs, (signal) =>
    fetcher(url, { method: 'POST', headers: { ...headers }, body, signal }),
  );
  return toolOutput(decodeBridgeReply(parseJson(bodyText), { status, requestId: idOf(bodyText, requestId) }));
}

/**
 * Returns the id of the answer: an answer in a test may have any id, while the gateway's own bridge requires the id of
 * its request.
 */
function idOf(bodyText: string, requestId: number): number | string {
  try {
    const { id } = parseExact(bodyText) as { id?: unknown };
    return typeof id === 'number' || typeof id === 'string' ? id : requestId;
  } catch {
    return requestId;
  }
}

async function runWithin<Result>(timeoutMs: number, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new RialtoError('remote_timeout', { message: `no answer within ${timeoutMs} ms` }));
      controller.abort();
    }, timeoutMs);
  });
  try {
    return await Promise.race([timeout, work(controller.signal)]);
  } catch (error) {
    throw error instanceof RialtoError ? error : new RialtoError('remote_transport', { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

function toolContext(orgId: string) {
  return {
    org: { id: orgId as OrgId, slug: orgId },
    principal: { kind: 'service' as const, id: 'tool', role: 'member' as const, groups: [] },
    surface: 'mcp' as const,
    requestId: newId(),
    depth: 0,
  };
}
