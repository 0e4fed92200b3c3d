import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import type { JsonObject } from '../kernel/json.js';
import { VerbBus } from '../kernel/verb-bus.js';
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
  ) {}

  /**
   * Calls a tool. Throws `denied`, `tool_changed`, `not_found` for an unknown name, `credential_required` and
   * `credential_refused` for a server with per-user credentials, `header_mismatch`, and what UpstreamConnection.request
   * throws.
   */
  async callTool(ctx: CallContext, call: UpstreamCall): Promise<JsonObject> {
    const { target, args, tasks } = call;
    const act = toolAct(ctx, call, args);
    const request = {
      server: target?.server,
      kind: 'tool',
      method: 'tools/call',
      params: { name: target?.tool.name ?? '', arguments: args },
      tasks,
      inputSchema: target?.tool.inputSchema,
    } as const;
    try {
      return await this.verbs.around(act, () => this.requests.sendRequest(act, request));
    } catch (error) {
      throw asToolChanged(error, target);
    }
  }

  /** Reads a resource from the server that most likely offers it. Throws as `callTool` does. */
  readResource(ctx: CallContext, servers: readonly RegisteredServer[], uri: string): Promise<JsonObject> {
    const owner = ownerOfUri(servers, uri);
    const act = readAct(ctx, owner, uri);
    const server = unlessExcluded(owner, uri);
    const request = { server, kind: 'resource', method: 'resources/read', params: { uri } } as const;
    return this.verbs.around(act, () => this.requests.sendRequest(act, request));
  }

  /** Gets a prompt. Throws as `callTool` does. */
  getPrompt(ctx: CallContext, call: PromptCall, args: JsonObject | undefined): Promise<JsonObject> {
    const { target } = call;
    const act = promptAct(ctx, call, args);
    const params = { name: target?.prompt.name ?? '', ...(args && { arguments: args }) };
    const request = { server: target?.server, kind: 'prompt', method: 'prompts/get', params } as const;
    return this.verbs.around(act, () => this.requests.sendRequest(act, request));
  }

  /** Completes an argument of a prompt. `params` are those of the protocol without `ref`. Throws as `callTool` does. */
  completePrompt(ctx: CallContext, call: PromptCall, params: JsonObject): Promise<JsonObject> {
    const { target } = call;
    const act = promptAct(ctx, call);
    const ref = { type: 'ref/prompt', name: target?.prompt.name ?? '' };
    return this.verbs.around(act, () => this.requests.sendRequest(act, completionOf(target?.server, params, ref)));
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
    return this.verbs.around(act, () =>
      this.requests.sendRequest(act, completionOf(unlessExcluded(owner, uri), params, ref)),
    );
  }
}

function completionOf(server: RegisteredServer | undefined, params: JsonObject, ref: JsonObject) {
  return { server, kind: 'completion', method: 'completion/complete', params: { ...params, ref } } as const;
}
