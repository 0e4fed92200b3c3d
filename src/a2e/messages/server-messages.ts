import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import type { JsonObject } from '../../kernel/json.js';
import { serverInfo, toolShape } from '../../protocol/a2e/shapes.js';
import { ServerViews } from '../../upstreams/server-views.js';
import { UpstreamAdmin } from '../../upstreams/upstream-admin.js';
import { UpstreamSubscriptions } from '../../upstreams/upstream-subscriptions.js';
import { ServerQuery, type ServerView } from '../../upstreams/upstream.types.js';
import { invalidMember, optionalObject, optionalText, requireText, type A2eCall } from './a2e-call.js';
import { withCallTimeout } from './call-timeout.js';
import { registrationOf } from './registration.js';
import { ServersInSight } from './servers-in-sight.js';

const Status = ServerQuery.shape.status;
const pageSize = 200;
/** Clients wait 20 s for a registration (AE-75), so it must end before. */
const registerMs = 18_000;
/** Notifications that only the gateway sends on its connection to a server. */
const connectionNotifications = new Set(
  ['initialized', 'cancelled', 'progress'].map((name) => `notifications/${name}`),
);

/** Handles messages about MCP servers themselves. */
@Injectable()
export class ServerMessages {
  constructor(
    private readonly admin: UpstreamAdmin,
    private readonly views: ServerViews,
    private readonly subscriptions: UpstreamSubscriptions,
    private readonly servers: ServersInSight,
  ) {}

  /**
   * Registers a server. Throws the errors of UpstreamAdmin.register, `invalid_params`, and `remote_timeout` early
   * enough for the client to receive it.
   */
  async register({ ctx, payload }: A2eCall): Promise<JsonObject> {
    const registration = registrationOf(payload);
    const until = systemClock.elapsed() + registerMs;
    const { id } = await withCallTimeout(ctx, registerMs, (within) => this.admin.register(within, registration));
    const server = await this.servers.requireServer(ctx, id);
    // Agents expect a registered server to be connected. If it is not ready in time, the reply contains its current
    // state.
    const leftMs = Math.max(0, until - systemClock.elapsed());
    await withCallTimeout(ctx, leftMs, (within) => this.subscriptions.ready(within, server)).catch(() => undefined);
    return { server_id: id, server: serverInfo(await this.views.get(ctx, id)) };
  }

  /**
   * Lists the servers that the caller may discover, filtered by `status` or its older name `status_filter`, or the one
   * with `server_id`. Throws `invalid_params`.
   */
  async list({ ctx, payload }: A2eCall): Promise<JsonObject> {
    const member = payload.status === undefined ? 'status_filter' : 'status';
    const status = Status.safeParse(optionalText(payload, member));
    if (!status.success) throw invalidMember(member, 'must be connecting, ready, error or disconnected');
    const only = optionalText(payload, 'server_id');
    const views = only === undefined ? await this.listAll(ctx, status.data) : [await this.views.get(ctx, only)];
    const infos = views.map(serverInfo);
    return { servers: payload.include_tools === true ? await this.withTools(ctx, infos) : infos };
  }

  /** Sends a notification to a server (AE-38). Throws the errors of UpstreamSubscriptions.notifyServer. */
  async sendNotification({ ctx, payload }: A2eCall): Promise<JsonObject> {
    const server = await this.servers.requireServer(ctx, requireText(payload, 'server_id'));
    const method = requireText(payload, 'method');
    if (!/^notifications\/./.test(method) || connectionNotifications.has(method))
      throw invalidMember(
        'method',
        'must name a notification other than initialized, cancelled and progress, which the gateway itself sends',
      );
    await this.subscriptions.notifyServer(ctx, server, method, optionalObject(payload, 'params') ?? {});
    return { server_id: server.row.serverId };
  }

  /** Lists the configured roots of a server. A server without configured roots asks each caller for its roots. */
  async listRoots({ ctx, payload }: A2eCall): Promise<JsonObject> {
    const { roots } = await this.views.get(ctx, requireText(payload, 'server_id'));
    return { roots: roots.map((root) => ({ ...root })) };
  }

  /** Unregisters a server. Throws `not_found`. */
  async unregister({ ctx, payload }: A2eCall): Promise<JsonObject> {
    const id = requireText(payload, 'server_id');
    await this.admin.unregister(ctx, id);
    return { server_id: id };
  }

  private async listAll(ctx: CallContext, status: ServerQuery['status']): Promise<ServerView[]> {
    const found: ServerView[] = [];
    let cursor: string | undefined;
    do {
      const { items, nextCursor } = await this.views.list(ctx, { limit: pageSize, status, cursor });
      found.push(...items);
      cursor = nextCursor ?? undefined;
    } while (cursor !== undefined);
    return found;
  }

  private async withTools(ctx: CallContext, infos: ReturnType<typeof serverInfo>[]): Promise<JsonObject[]> {
    const known = new Map((await this.servers.listRegistered(ctx)).map((server) => [server.row.serverId, server]));
    return infos.map((info) => {
      const tools = (known.get(info.server_id)?.tools ?? []).filter(({ quarantine }) => !quarantine);
      return { ...info, tools: tools.map(({ canonical, tool }) => toolShape(canonical, tool)) };
    });
  }
}
