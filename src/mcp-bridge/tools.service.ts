import { Injectable } from '@nestjs/common';
import { A2AClientService } from '../a2a-client/a2a-client.service.js';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError, type Violation } from '../kernel/errors.js';
import { newId } from '../kernel/ids.js';
import { isJsonObject, type JsonObject } from '../kernel/json.js';
import { VerbBus, type VerbCall } from '../kernel/verb-bus.js';
import { Cursors } from '../platform/http/cursor.js';
import { OrgService } from '../policy/auth/org.service.js';
import { toolOutput } from '../protocol/a2a/bridge-call.js';
import { invalidArguments, toolResult, type ToolResult } from '../protocol/mcp/tool-result.js';
import { RegistryService, type AgentSnapshot } from '../registry/registry.service.js';
import { ToolPageFiller, type ToolPage, type ToolPosition } from './tool-page.js';
import { catalogueOf, isListed, textsOf, type NameMode, type ToolCatalogue, type ToolEntry } from './tool-catalogue.js';

/** What a request to the MCP door may ask of the list: `?names=` and `?agents=`. */
export interface ListOptions {
  readonly names?: NameMode;
  readonly agents?: ReadonlySet<string>;
}

export interface ToolCall {
  readonly name: string;
  readonly args: JsonObject;
}

/** What a call gave. */
export interface ToolOutcome {
  readonly result: ToolResult;
  /** The task of ours that goes on, when the result is not the end of it. */
  readonly goesOnAs?: string;
}

/** The tools of an org for MCP clients: listed by what the caller may discover, called by what it may invoke. */
@Injectable()
export class ToolsService {
  private readonly catalogues = new WeakMap<AgentSnapshot, ToolCatalogue>();

  constructor(
    private readonly registry: RegistryService,
    private readonly orgs: OrgService,
    private readonly client: A2AClientService,
    private readonly verbs: VerbBus,
    private readonly cursors: Cursors,
  ) {}

  /**
   * A page of prebuilt tools in a stable order. A cursor goes on after the tool it names, whether or not that tool still
   * exists; throws `invalid_params` for one of another org or of other list options (MCP, pagination).
   */
  async list(ctx: CallContext, { names, agents }: ListOptions, cursor?: unknown): Promise<ToolPage> {
    const catalogue = await this.catalogue(ctx);
    const mode = names ?? (await this.orgs.toolSettings(ctx.org.id)).names;
    const scope = JSON.stringify(['mcp-tools', ctx.org.id, mode, agents ? [...agents].sort() : null]);
    const after = cursor === undefined ? undefined : this.positionOf(scope, cursor);
    const shown = new Map<string, boolean>();
    const page = new ToolPageFiller();
    for (const entry of catalogue.entries) {
      const { slug } = entry.agent.row;
      if ((after && entry.canonical < after[0]) || !isListed(entry.agent) || (agents && !agents.has(slug))) continue;
      if (!shown.has(slug)) shown.set(slug, await this.registry.mayDiscover(ctx, slug));
      if (shown.get(slug) && !fill(page, entry, mode, after))
        return { texts: page.texts, nextCursor: this.cursors.encode(scope, page.last!) };
    }
    return { texts: page.texts };
  }

  private positionOf(scope: string, cursor: unknown): ToolPosition {
    const [canonical, index] = this.cursors.decode(scope, typeof cursor === 'string' ? cursor : '', 2);
    return [canonical!, index!];
  }

  /**
   * Calls a tool by either name. The decision on its canonical name comes before everything else, so that a name that is
   * denied answers alike whether or not it exists (decisions: MCP). Throws RialtoError; bad arguments are a result.
   */
  async call(ctx: CallContext, { name, args }: ToolCall): Promise<ToolOutcome> {
    const entry = (await this.catalogue(ctx)).byName.get(name);
    if (!entry)
      return this.verbs.around(invocation(ctx, name, undefined, args), () => Promise.reject(unknownTool(name)));
    const violations = violationsOf(entry, args);
    if (violations.length > 0) return { result: await this.refuseArguments(ctx, entry, { name, args }, violations) };
    const { agent, skillId, canonical } = entry;
    const call = this.client.invokeSkill(ctx, {
      agent,
      skillId,
      verb: canonical,
      legacyAlias: name === canonical ? undefined : name,
      args,
      sessionId: `a2a-${agent.row.id}-${skillId}-${newId()}`,
      timeoutMs: agent.row.timeoutMs ?? (await this.orgs.toolSettings(ctx.org.id)).timeoutMs,
      signal: ctx.signal,
    });
    const reply = await call.catch((error: unknown) => Promise.reject(asCalled(error, name)));
    // What is still working was handed over: a task of ours.
    const isUnderWay = reply.kind === 'task' && reply.state === 'TASK_STATE_WORKING';
    return { result: toolResult(toolOutput(reply)), ...(isUnderWay && { goesOnAs: reply.taskId }) };
  }

  private async catalogue({ org }: CallContext): Promise<ToolCatalogue> {
    const snapshot = this.registry.peekSnapshot(org.id) ?? (await this.registry.snapshot(org.id));
    let catalogue = this.catalogues.get(snapshot);
    if (!catalogue) {
      catalogue = catalogueOf(snapshot);
      this.catalogues.set(snapshot, catalogue);
    }
    return catalogue;
  }

  /** Decided and recorded like any call, so that a caller who may not call learns nothing of the schema. */
  private async refuseArguments(
    ctx: CallContext,
    entry: ToolEntry,
    { name, args }: ToolCall,
    violations: Violation[],
  ): Promise<ToolResult> {
    const refused = new RialtoError('invalid_params', { message: 'the arguments break the input schema', violations });
    const legacyAlias = name === entry.canonical ? undefined : name;
    try {
      const call = { ...invocation(ctx, entry.canonical, entry, args), legacyAlias };
      return await this.verbs.around(call, () => Promise.reject(refused));
    } catch (error) {
      if (error === refused) return invalidArguments(violations);
      throw asCalled(error, name);
    }
  }
}

/** Adds the texts of an entry that come after a position; false when the page is full before the last of them. */
function fill(page: ToolPageFiller, entry: ToolEntry, mode: NameMode, after: ToolPosition | undefined): boolean {
  const begun = after?.[0] === entry.canonical ? Number(after[1]) + 1 : 0;
  return textsOf(entry, mode).every((text, index) => index < begun || page.add(text, [entry.canonical, String(index)]));
}

function violationsOf(entry: ToolEntry, args: JsonObject): Violation[] {
  const schema = entry.schema();
  if (schema.ok) return schema.validate(args);
  return [{ field: '', description: `the agent's input schema is refused: ${schema.reason}` }];
}

function invocation(ctx: CallContext, verb: string, entry: ToolEntry | undefined, args: JsonObject): VerbCall {
  return {
    ctx,
    verb,
    action: 'a2a_invoke',
    resource: { type: 'Skill', id: verb, parent: entry?.agent.row.slug },
    args,
  };
}

/** A denial names the tool as its caller did: a canonical name told for an alias would say that the tool exists. */
function asCalled(thrown: unknown, name: string): RialtoError {
  const error = RialtoError.from(thrown);
  if (error.code !== 'denied') return error;
  return new RialtoError('denied', { message: error.message, data: { ...error.data, verb: name }, cause: error });
}

function unknownTool(name: string): RialtoError {
  return new RialtoError('not_found', {
    message: `Unknown tool: ${name.slice(0, 200)}`,
    hint: 'tools/list shows what there is',
  });
}

/** The call that `tools/call` params ask for. Throws `invalid_params`. */
export function readToolCall(params: unknown): ToolCall {
  const given = isJsonObject(params) ? params : {};
  const { name, arguments: args = {} } = given;
  if (typeof name !== 'string' || name === '' || name.length > 256)
    throw new RialtoError('invalid_params', { message: 'params.name is the name of a tool' });
  if (!isJsonObject(args)) throw new RialtoError('invalid_params', { message: 'params.arguments is an object' });
  return { name, args };
}
