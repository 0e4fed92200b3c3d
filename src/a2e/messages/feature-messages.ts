import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import { A2eRefusal } from '../../protocol/a2e/errors.js';
import { contentShape, promptShape, resourceShape } from '../../protocol/a2e/shapes.js';
import { upstreamName } from '../../protocol/mcp/tool-names.js';
import { UpstreamCalls, type PromptCall } from '../../upstreams/upstream-calls.js';
import type { RegisteredServer } from '../../upstreams/registered-server.types.js';
import { UpstreamSubscriptions } from '../../upstreams/upstream-subscriptions.js';
import { optionalObject, requireText, type A2eCall } from './a2e-call.js';
import { withCallTimeout } from './call-timeout.js';
import { ServersInSight } from './servers-in-sight.js';

/** Timeout for a resource or a prompt, unless its server has a shorter one (AE-67). */
const featureMs = 30_000;

/** Handles messages about the resources and prompts of MCP servers. */
@Injectable()
export class FeatureMessages {
  constructor(
    private readonly servers: ServersInSight,
    private readonly calls: UpstreamCalls,
    private readonly subscriptions: UpstreamSubscriptions,
  ) {}

  /** Lists stored resources without a request to a server. Throws the errors of ServersInSight.findNamed. */
  async listResources({ ctx, payload }: A2eCall): Promise<JsonObject> {
    const servers = await this.listServers(ctx, payload, 'resources');
    return {
      resources: servers.flatMap(({ row, resources }) => resources.map((one) => resourceShape(row.serverId, one))),
    };
  }

  /** Reads a resource. Throws the errors of UpstreamCalls.readResource and ServersInSight.findNamed. */
  async readResource({ ctx, payload }: A2eCall): Promise<JsonObject> {
    const uri = requireText(payload, 'uri');
    const candidates = await this.listCandidates(ctx, payload);
    const { contents } = await withCallTimeout(ctx, featureMs, (within) =>
      this.calls.readResource(within, candidates, uri),
    );
    return { uri, contents: (contents as Json[]).map(contentShape) };
  }

  /**
   * Subscribes to a resource; `subscribe: false` ends the subscription. Throws the errors of
   * UpstreamSubscriptions.findWatchable, and `mcp_capability_missing` for a message by POST.
   */
  async subscribeResource({ ctx, payload, agent }: A2eCall): Promise<JsonObject> {
    const uri = requireText(payload, 'uri');
    if (!agent)
      throw new A2eRefusal('mcp_capability_missing', 'changes are pushed on a WebSocket only: open one at /a2e');
    const server = await this.subscriptions.findWatchable(ctx, await this.listCandidates(ctx, payload), uri);
    const subscribed = payload.subscribe !== false;
    if (subscribed) await agent.subscribe(server, uri);
    else agent.unsubscribe(server, uri);
    return { uri, server_id: server.row.serverId, subscribed };
  }

  /** Lists stored prompts without a request to a server. Throws the errors of ServersInSight.findNamed. */
  async listPrompts({ ctx, payload }: A2eCall): Promise<JsonObject> {
    const servers = await this.listServers(ctx, payload, 'prompts');
    return {
      prompts: servers.flatMap(({ row, prompts }) =>
        prompts.map(({ canonical, prompt }) => promptShape(row.serverId, canonical, prompt)),
      ),
    };
  }

  /** Returns a filled-in prompt. Throws the errors of UpstreamCalls.getPrompt and ServersInSight.findNamed. */
  async getPrompt({ ctx, payload }: A2eCall): Promise<JsonObject> {
    const name = requireText(payload, 'name');
    const args = optionalObject(payload, 'arguments');
    const promptCall = await this.findPrompt(ctx, payload, name);
    const { description = null, messages } = await withCallTimeout(ctx, featureMs, (within) =>
      this.calls.getPrompt(within, promptCall, args),
    );
    return { name, server_id: promptCall.serverId, description, messages: messages! };
  }

  private async listServers(
    ctx: CallContext,
    payload: JsonObject,
    capability: 'resources' | 'prompts',
  ): Promise<readonly RegisteredServer[]> {
    const only = await this.servers.findNamed(ctx, payload, capability);
    return only ? [only] : this.servers.listVisible(ctx);
  }

  /**
   * Servers that may have a resource. The policy decides about the read of the resource, not about the servers that
   * are searched.
   */
  private async listCandidates(ctx: CallContext, payload: JsonObject): Promise<readonly RegisteredServer[]> {
    const only = await this.servers.findNamed(ctx, payload, 'resources');
    return only ? [only] : this.servers.listRegistered(ctx);
  }

  /**
   * Finds a prompt by its name at the server, or by its name in policies. If several servers have the name, the first
   * by id is used (AE-53).
   */
  private async findPrompt(ctx: CallContext, payload: JsonObject, name: string): Promise<PromptCall> {
    const only = await this.servers.findNamed(ctx, payload, 'prompts');
    const prompts = (only ? [only] : await this.servers.listVisible(ctx)).flatMap((server) => server.prompts);
    const target =
      prompts.find(({ canonical }) => canonical === name) ?? prompts.find(({ prompt }) => prompt.name === name);
    const serverId = target?.server.row.serverId ?? only?.row.serverId ?? serverIdIn(name);
    return { target, serverId, canonical: target?.canonical ?? (only ? upstreamName(serverId, name) : name) };
  }
}

/** Id of the server in a name `<serverId>__<prompt>`. */
function serverIdIn(name: string): string {
  return name.slice(0, Math.max(0, name.indexOf('__')));
}
