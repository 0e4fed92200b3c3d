import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { isJsonObject, type JsonObject } from '../kernel/json.js';
import type { Peer } from '../kernel/peer.js';
import { VerbBus, type Act } from '../kernel/verb-bus.js';
import type { NeededApproval } from '../kernel/verbs.js';
import { AskedQuestions } from './calls/asked-questions.js';
import { promptAct, readAct, toolAct, type CallTarget } from './calls/upstream-acts.js';
import { asToolChanged } from './calls/upstream-decisions.js';
import { UpstreamRequests } from './calls/upstream-requests.js';
import type { RegisteredServer, UpstreamPrompt, UpstreamTool } from './registered-server.types.js';
import { ownerOfUri, unlessExcluded } from './storage/registered-server.js';
import type { TaskTaker } from './upstream-tasks.types.js';

export interface UpstreamCall extends CallTarget {
  readonly target?: UpstreamTool;
  readonly args: JsonObject;
  /** Accepts a task in place of a result. When absent, the server is not told that it may answer with a task. */
  readonly tasks?: TaskTaker;
  /** The act that this call is the work of. */
  readonly within?: Act;
  /** The same for every attempt of this call; one approval permits all of them. */
  readonly attemptKey?: string;
}

export interface PromptCall extends CallTarget {
  readonly target?: UpstreamPrompt;
}

/**
 * Calls tools, resources, prompts and completions of MCP servers. Authorizes each request first, then passes on the
 * answer of the server.
 */
@Injectable()
export class UpstreamCalls {
  constructor(
    private readonly verbs: VerbBus,
    private readonly requests: UpstreamRequests,
    private readonly asked: AskedQuestions,
  ) {}

  /**
   * Calls a tool. Throws `denied`, `tool_changed`, `not_found` for an unknown name, `credential_required` and
   * `credential_refused` for a server with per-user credentials, `header_mismatch`, and what UpstreamConnection.request
   * throws.
   */
  async callTool(given: CallContext, call: UpstreamCall): Promise<JsonObject> {
    const { target, args, tasks, within, attemptKey, canonical } = call;
    const ctx = this.asked.readFrom(given, canonical);
    const decided = { ...toolAct(ctx, call, args), ...(within && { within, sessionId: within.sessionId }) };
    const request = {
      server: target?.server,
      kind: 'tool',
      method: 'tools/call',
      params: { name: target?.tool.name ?? '', arguments: args },
      tasks,
      inputSchema: target?.tool.inputSchema,
    } as const;
    const check = () => this.requests.requireSendable(decided, request);
    const content = withAnswers(args, ctx.peer);
    const identity = { server: identityOf(target?.server) ?? null, ...stateIn(ctx.peer) };
    const bound = { target: identity, content, attemptKey };
    try {
      return await this.verbs.around({ ...decided, ...bound, check }, async (act) =>
        this.asked.addTo(await this.requests.sendRequest(act, request), act),
      );
    } catch (error) {
      throw asToolChanged(error, target);
    }
  }

  /** Returns the approval that a call of a tool needs; undefined when it needs none or is denied. */
  async approvalFor(ctx: CallContext, call: UpstreamCall): Promise<NeededApproval | undefined> {
    return (await this.verbs.decide(toolAct(ctx, call, call.args))).needs;
  }

  /** Reads a resource from the server that most likely offers it. Throws as `callTool` does. */
  readResource(ctx: CallContext, servers: readonly RegisteredServer[], uri: string): Promise<JsonObject> {
    const owner = ownerOfUri(servers, uri);
    const act = readAct(ctx, owner, uri);
    const server = unlessExcluded(owner, uri);
    const request = { server, kind: 'resource', method: 'resources/read', params: { uri } } as const;
    return this.verbs.around(act, (begun) => this.requests.sendRequest(begun, request));
  }

  /** Gets a prompt. Throws as `callTool` does. */
  getPrompt(ctx: CallContext, call: PromptCall, args: JsonObject | undefined): Promise<JsonObject> {
    const { target } = call;
    const act = promptAct(ctx, call, args);
    const params = { name: target?.prompt.name ?? '', ...(args && { arguments: args }) };
    const request = { server: target?.server, kind: 'prompt', method: 'prompts/get', params } as const;
    return this.verbs.around(act, (begun) => this.requests.sendRequest(begun, request));
  }

  /** Completes an argument of a prompt. `params` are those of the protocol without `ref`. Throws as `callTool` does. */
  completePrompt(ctx: CallContext, call: PromptCall, params: JsonObject): Promise<JsonObject> {
    const { target } = call;
    const act = promptAct(ctx, call);
    const ref = { type: 'ref/prompt', name: target?.prompt.name ?? '' };
    return this.verbs.around(act, (begun) =>
      this.requests.sendRequest(begun, completionOf(target?.server, params, ref)),
    );
  }

  /** Completes a variable of a resource template. Throws as `callTool` does. */
  completeUri(
    ctx: CallContext,
    servers: readonly RegisteredServer[],
    uri: string,
    params: JsonObject,
  ): Promise<JsonObject> {
    const owner = ownerOfUri(servers, uri);
    const act = readAct(ctx, owner, uri);
    const ref = { type: 'ref/resource', uri };
    return this.verbs.around(act, (begun) =>
      this.requests.sendRequest(begun, completionOf(unlessExcluded(owner, uri), params, ref)),
    );
  }
}

/** Returns what tells a server from another one that gets its id later. */
export function identityOf(server: Pick<RegisteredServer, 'row'> | undefined): JsonObject | undefined {
  if (!server) return undefined;
  const { id, url, program } = server.row;
  return { id, url, program: program as unknown as JsonObject | null };
}

/** Returns all that a call sends, with the questions if they are known, when it answers questions of the server. */
function withAnswers(args: JsonObject, peer: Peer | undefined): JsonObject | undefined {
  const given = peer?.answers?.inputResponses;
  if (!isJsonObject(given) || Object.keys(given).length === 0) return undefined;
  return { args, ...(peer?.questions && { questions: peer.questions }), answers: given };
}

/**
 * Returns what tells answers to questions that are not known here from answers to others: the state of the server,
 * which the client sends back.
 */
function stateIn(peer: Peer | undefined): JsonObject {
  const state = peer?.answers?.requestState;
  return state === undefined || peer?.questions ? {} : { requestState: state };
}

function completionOf(server: RegisteredServer | undefined, params: JsonObject, ref: JsonObject) {
  return { server, kind: 'completion', method: 'completion/complete', params: { ...params, ref } } as const;
}
