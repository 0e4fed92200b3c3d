import { Injectable } from '@nestjs/common';
import { A2AClientService } from '../../a2a-client/a2a-client.service.js';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError, type Violation } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import { VerbBus, type VerbCall } from '../../kernel/verb-bus.js';
import { Cursors } from '../../platform/http/cursor.js';
import { OrgService } from '../../policy/org.service.js';
import { toolOutput } from '../../protocol/a2a/remote/bridge-call.js';
import { invalidArguments, toolResult, type ToolResult } from '../../protocol/mcp/tool-result.js';
import { PageFiller, type Page, type Position } from './list-page.js';
import { isListed, ownerOf, textsOf, type ListedNames, type SkillEntry, type ToolEntry } from './tool-catalogue.js';
import { ToolCatalogues } from './tool-catalogues.js';
import type { CallOptions, ListOptions, ToolCall, ToolOutcome } from './tool-call.types.js';
import { asCalled, namesServer, ServerTools, unknownTool } from './server-tools.js';

/** The tools of an org for MCP clients: listed when the caller may discover them, called when it may invoke them. */
@Injectable()
export class ToolsService {
  constructor(
    private readonly catalogues: ToolCatalogues,
    private readonly orgs: OrgService,
    private readonly client: A2AClientService,
    private readonly servers: ServerTools,
    private readonly verbs: VerbBus,
    private readonly cursors: Cursors,
  ) {}

  /**
   * Returns a page of tools in a stable order. A cursor continues after the tool that it names, even when that tool no
   * longer exists; throws `invalid_params` for a cursor of another org or of other list options (MCP, pagination).
   */
  async list(ctx: CallContext, { names, agents, only, ...more }: ListOptions, cursor?: unknown): Promise<Page> {
    const catalogue = await this.catalogues.of(ctx);
    const mode = only === undefined ? (names ?? (await this.orgs.toolSettings(ctx.org.id)).names) : 'own';
    const servers = only === undefined ? more.servers : new Set([only]);
    const wanted = agents || servers ? { agent: agents, server: servers } : undefined;
    const scope = JSON.stringify(['mcp-tools', ctx.org.id, mode, sorted(agents), sorted(servers)]);
    const after = cursor === undefined ? undefined : this.positionOf(scope, cursor);
    const visible = new Map<string, boolean>();
    const page = new PageFiller();
    for (const entry of catalogue.entries) {
      const { kind, id } = ownerOf(entry);
      if ((after && entry.canonical < after[0]) || !isListed(entry) || (wanted && !wanted[kind]?.has(id))) continue;
      const owner = `${kind} ${id}`;
      if (!visible.has(owner)) visible.set(owner, await this.catalogues.mayDiscover(ctx, { kind, id }));
      if (visible.get(owner) && !fill(page, entry, mode, after))
        return { texts: page.texts, nextCursor: this.cursors.encode(scope, [...page.last!] as string[]) };
    }
    return { texts: page.texts };
  }

  private positionOf(scope: string, cursor: unknown): Position {
    const [canonical, index] = this.cursors.decode(scope, typeof cursor === 'string' ? cursor : '', 2);
    return [canonical!, index];
  }

  /**
   * Calls a tool by either name. The policy decision on the canonical name comes first, so that the answer for a
   * denied name does not reveal whether the tool exists (decisions: MCP). Throws RialtoError; bad arguments are a
   * result.
   */
  async call(ctx: CallContext, { name, args }: ToolCall, { only, goesOnAfterMs }: CallOptions): Promise<ToolOutcome> {
    const { byName } = await this.catalogues.of(ctx);
    if (only !== undefined) return this.servers.callOwn(ctx, only, byName, { name, args }, goesOnAfterMs);
    const entry = byName.get(name);
    if (entry?.kind === 'upstream' || (!entry && namesServer(name)))
      return this.servers.call(ctx, entry, { name, args }, goesOnAfterMs);
    if (!entry)
      return this.verbs.around(invocation(ctx, name, undefined, args), () => Promise.reject(unknownTool(name)));
    const found = this.catalogues.violations(ctx, entry, args);
    const violations = found instanceof Promise ? await found : found;
    if (violations.length > 0) return { result: await this.refuseArguments(ctx, entry, { name, args }, violations) };
    const { agent, skillId, canonical } = entry;
    const call = this.client.invokeSkill(ctx, {
      agent,
      skillId,
      verb: canonical,
      calledAs: name,
      args,
      sessionId: `a2a-${agent.row.id}-${skillId}-${newId()}`,
      timeoutMs: agent.row.timeoutMs ?? (await this.orgs.toolSettings(ctx.org.id)).timeoutMs,
      signal: ctx.signal,
    });
    const reply = await call.catch((error: unknown) => Promise.reject(asCalled(error, name)));
    // A reply that is still working was handed over: it is now a task of the gateway.
    const isRunning = reply.kind === 'task' && reply.state === 'TASK_STATE_WORKING';
    return { result: toolResult(toolOutput(reply)), ...(isRunning && { goesOnAs: reply.taskId }) };
  }

  /**
   * Refuses bad arguments with a decision and a record like any call, so that a caller without permission learns
   * nothing about the schema.
   */
  private async refuseArguments(
    ctx: CallContext,
    entry: SkillEntry,
    { name, args }: ToolCall,
    violations: readonly Violation[],
  ): Promise<ToolResult> {
    const refused = new RialtoError('invalid_params', { message: 'the arguments break the input schema', violations });
    try {
      const names = { legacyAlias: entry.alias, calledAs: name };
      const call = { ...invocation(ctx, entry.canonical, entry, args), ...names };
      return await this.verbs.around(call, () => Promise.reject(refused));
    } catch (error) {
      if (error === refused) return invalidArguments(violations);
      throw asCalled(error, name);
    }
  }
}

/** Adds the texts of an entry after a position; returns false when the page is full before the last text. */
function fill(page: PageFiller, entry: ToolEntry, mode: ListedNames, after: Position | undefined): boolean {
  const firstIndex = after?.[0] === entry.canonical ? Number(after[1]) + 1 : 0;
  return textsOf(entry, mode).every(
    (text, index) => index < firstIndex || page.add(text, [entry.canonical, String(index)]),
  );
}

function invocation(ctx: CallContext, verb: string, entry: SkillEntry | undefined, args: JsonObject): VerbCall {
  return {
    ctx,
    verb,
    action: 'a2a_invoke',
    resource: { type: 'Skill', id: verb, parent: entry?.agent.row.slug },
    args,
  };
}

function sorted(ids: ReadonlySet<string> | undefined): string[] | null {
  return ids ? [...ids].sort() : null;
}

/** Reads the params of `tools/call`. Throws `invalid_params`. */
export function readToolCall(params: unknown): ToolCall {
  const given = isJsonObject(params) ? params : {};
  const { name, arguments: args = {} } = given;
  if (typeof name !== 'string' || name === '' || name.length > 256)
    throw new RialtoError('invalid_params', { message: 'params.name must be the name of a tool' });
  if (!isJsonObject(args)) throw new RialtoError('invalid_params', { message: 'params.arguments must be an object' });
  return { name, args };
}
