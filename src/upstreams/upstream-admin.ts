import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { storableText } from '../kernel/json.js';
import { newId } from '../kernel/ids.js';
import { AdminActs } from '../platform/bus/admin-acts.js';
import { Cursors, pageOf, type Page } from '../platform/http/cursor.js';
import { withoutQuery } from '../platform/secrets/url-queries.js';
import type { McpServerEntity } from './storage/mcp-server.entity.js';
import { completed, nothingYet } from './storage/offer.js';
import { endpointChanged, endpointFrom, SealedEndpoints, type Endpoint } from './storage/sealed-endpoints.js';
import { columnsOf } from './storage/server-columns.js';
import type { ProgramOwner } from './programs/program-caches.js';
import { UpstreamPool, type Probed } from './connections/upstream-pool.js';
import { UpstreamStore } from './storage/upstream.store.js';
import type { ApproveTools, ChangeServer, Offer, RegisterServer, ServerQuery, ServerView } from './upstream.types.js';
import { UpstreamsService } from './upstreams.service.js';

const maxProblems = 200;

type Used = Pick<McpServerEntity, 'userCredentials' | 'roots' | 'era' | 'autoReconnect'>;
/** Connects to a server and reads what it offers. */
type Probe = (owner: ProgramOwner, endpoint: Endpoint, used: Used) => Promise<Offer>;

/** Registers, changes and removes MCP servers for admins. */
@Injectable()
export class UpstreamAdmin {
  constructor(
    private readonly store: UpstreamStore,
    private readonly places: SealedEndpoints,
    private readonly upstreams: UpstreamsService,
    private readonly pool: UpstreamPool,
    private readonly acts: AdminActs,
    private readonly cursors: Cursors,
  ) {}

  /**
   * Registers a server. Connects first and stores nothing when the server cannot be used (AE-47). Throws
   * `url_not_allowed`, `slug_taken`, `unprocessable` (too many), and what UpstreamConnection.request throws.
   */
  async register(ctx: CallContext, input: RegisterServer): Promise<ServerView> {
    const serverId = input.id ?? randomBytes(4).toString('hex');
    const endpoint = endpointFrom(input);
    const write = (probe: Probe) =>
      this.acts.prepareAndWrite(
        ctx,
        'mcp.server.register',
        { server: serverId, at: hostOrCommand(endpoint) },
        async () => {
          const owner = { orgId: ctx.org.id, serverId };
          await this.store.requireFree(owner);
          const offer = await probe(owner, endpoint, columnsOf(input));
          // A caller that received a timeout must not find the server registered later.
          if (ctx.signal?.aborted) throw new RialtoError('canceled');
          return offer;
        },
        async (tx, offer) => {
          await this.store.lock(tx, ctx.org.id);
          const place = { id: newId(), orgId: ctx.org.id };
          const stored = await this.store.insert(tx, {
            ...place,
            serverId,
            name: input.name ?? nameOf(offer) ?? serverId,
            offer,
            ...columnsOf(input),
            ...this.places.columnsOf(place, endpoint),
          });
          this.upstreams.tellChanged(tx, stored);
          return stored;
        },
      );
    return this.viewOf(ctx, await this.writeProbed(write));
  }

  /** Lists the servers that the caller may discover, in order of their ids. */
  list(ctx: CallContext, { limit, cursor, status }: ServerQuery): Promise<Page<ServerView>> {
    return this.acts.read(ctx, 'mcp.server.list', async () => {
      const scope = `mcp-servers:${ctx.org.id}:${status ?? ''}`;
      const [after] = cursor ? this.cursors.decode(scope, cursor, 1) : [];
      const rows = (await this.store.findAll(ctx.org.id)).filter(({ serverId }) => !after || serverId > after);
      const shown = await Promise.all(rows.map((row) => this.upstreams.mayDiscover(ctx, row.serverId)));
      const views = await Promise.all(rows.filter((_, index) => shown[index]).map((row) => this.viewOf(ctx, row)));
      const wanted = views.filter((view) => status === undefined || view.status === status);
      return pageOf(
        wanted.slice(0, limit + 1),
        limit,
        (view) => view,
        ({ id }) => this.cursors.encode(scope, [id]),
      );
    });
  }

  get(ctx: CallContext, serverId: string): Promise<ServerView> {
    return this.acts.read(ctx, 'mcp.server.get', async () => this.viewOf(ctx, await this.visible(ctx, serverId)));
  }

  /**
   * Changes a server. Throws as `register` does, `not_found`, and `conflict` for another address or other limits of a
   * server that the operator has declared.
   */
  async change(ctx: CallContext, serverId: string, input: ChangeServer): Promise<ServerView> {
    const { name, timeoutMs, autoReconnect, roots, callsPerMinute, toolChanges, era } = input;
    const { toolAllowList, resourceAllowList } = input;
    const users = { userCredentials: input.userCredentials, userHeaders: input.userHeaders };
    const write = (probe: Probe) =>
      this.acts.prepareAndWrite(
        ctx,
        'mcp.server.change',
        { server: serverId, fields: Object.keys(input) },
        async () => {
          const row = await this.visible(ctx, serverId);
          const known = this.places.endpointOf(row);
          const endpoint = endpointChanged(known, input);
          const isUnmoved = JSON.stringify(endpoint) === JSON.stringify(known) && (era ?? row.era) === row.era;
          const bounds = [toolAllowList, resourceAllowList, toolChanges, roots, era, ...Object.values(users)];
          const isBound = isUnmoved && bounds.every((bound) => bound === undefined);
          if (!isBound && row.source === 'config') throw declaredError();
          const { userCredentials = row.userCredentials } = users;
          if (isUnmoved && (row.userCredentials !== 'required' || userCredentials === 'required')) return { row };
          const reconnects = autoReconnect ?? row.autoReconnect;
          const used = { userCredentials, roots: roots ?? row.roots, era: era ?? row.era, autoReconnect: reconnects };
          return { row, moved: { endpoint, offer: await probe(row, endpoint, used) } };
        },
        async (tx, { row, moved }) => {
          const place = moved && { ...this.places.columnsOf(row, moved.endpoint), offer: moved.offer };
          const lists = { toolAllowList, resourceAllowList, toolChanges };
          const use = { ...users, ...lists, timeoutMs, autoReconnect, roots, callsPerMinute, era };
          return this.upstreams.change(tx, row, { name, ...use, ...place });
        },
      );
    return this.viewOf(ctx, await this.writeProbed(write));
  }

  /**
   * Reconnects to a server without waiting for a backoff, and reads what it offers. Throws `not_found`, and as
   * `register` does.
   */
  async refresh(ctx: CallContext, serverId: string): Promise<ServerView> {
    const fresh = await this.acts.prepareAndWrite(
      ctx,
      'mcp.server.refresh',
      { server: serverId },
      async () => {
        const row = await this.visible(ctx, serverId);
        this.pool.drop(row.id);
        // A server with per-user credentials is read again for each user at that user's next call.
        const isReadForAll = row.userCredentials !== 'required';
        if (!isReadForAll) return { row, offer: row.offer };
        // The server may speak another revision now: the remembered fallback to `initialize` is dropped.
        const unknown = { ...row, offer: { ...row.offer, wantsInitialize: undefined } };
        return { row, offer: completed(await this.pool.to(unknown).shared.offer(), row.offer) };
      },
      (tx, { row, offer }) => this.upstreams.change(tx, row, { offer }),
    );
    return this.viewOf(ctx, fresh);
  }

  /**
   * Ends the quarantine of all tools or of the named ones. Throws `not_found`, `unprocessable` for a name that the
   * server does not offer, and `conflict` for a definition that changed since the admin read it.
   */
  async approve(ctx: CallContext, serverId: string, { tools }: ApproveTools): Promise<ServerView> {
    const approved = await this.acts.prepareAndWrite(
      ctx,
      'mcp.server.approve',
      { server: serverId, ...(tools && { tools: tools.map(({ name }) => name) }) },
      () => this.visible(ctx, serverId),
      (tx, row) => this.upstreams.approve(tx, row, tools),
    );
    return this.viewOf(ctx, approved);
  }

  /**
   * Removes a server with its tools; running calls end as `unavailable` (AE-48). Throws `not_found`, and `conflict` for
   * a declared server.
   */
  unregister(ctx: CallContext, serverId: string): Promise<void> {
    return this.acts.prepareAndWrite(
      ctx,
      'mcp.server.unregister',
      { server: serverId },
      async () => {
        const row = await this.visible(ctx, serverId);
        if (row.source === 'config') throw declaredError();
        return row;
      },
      async (tx, row) => {
        if (!(await this.store.delete(tx, row.id))) throw noSuchServer();
        this.upstreams.tellChanged(tx, row);
      },
    );
  }

  /**
   * Writes a row with the result of a probe. The row takes over the connection of the probe, so that a program is not
   * started twice; when nothing is written, the connection is closed. Throws what `write` throws.
   */
  private async writeProbed(write: (probe: Probe) => Promise<McpServerEntity>): Promise<McpServerEntity> {
    let probed: Probed | undefined;
    try {
      const row = await write(async (...at) => {
        probed = await this.probeAt(...at);
        return probed?.offer ?? nothingYet;
      });
      if (probed) await this.pool.adopt(row, probed);
      return row;
    } catch (thrown) {
      await probed?.close();
      throw thrown;
    }
  }

  /**
   * Reads the offer that is the same for all callers; returns undefined for a server with per-user credentials. Throws
   * as `register` does.
   */
  private async probeAt(...[owner, endpoint, used]: Parameters<Probe>): Promise<Probed | undefined> {
    if (used.userCredentials !== 'required')
      return this.pool.probeToKeep(owner, endpoint, used).catch((thrown: unknown) => {
        throw endpoint.transport === 'stdio' ? withStderrHint(RialtoError.from(thrown)) : thrown;
      });
    this.pool.check(endpoint);
    return undefined;
  }

  /** Returns the row of a server. Throws `not_found` for a server that the caller may not discover. */
  async visible(ctx: CallContext, serverId: string): Promise<McpServerEntity> {
    const row = await this.store.find(ctx.org.id, serverId);
    if (!row || !(await this.upstreams.mayDiscover(ctx, serverId))) throw noSuchServer();
    return row;
  }

  /** Shows a server with what it offers to the caller. */
  private async viewOf(ctx: CallContext, row: McpServerEntity): Promise<ServerView> {
    const { connection, server } = await this.upstreams.seen(ctx, row);
    const { protocolVersion, serverInfo } = server.row.offer;
    const { tools, resources, templates, prompts } = server;
    return {
      id: row.serverId,
      name: row.name,
      transport: row.transport,
      url: row.url && withoutQuery(row.url),
      command: row.program?.command ?? null,
      args: [...(row.program?.args ?? [])],
      cwd: row.program?.cwd ?? null,
      headers: row.headerNames,
      env: row.envNames,
      userCredentials: row.userCredentials,
      userHeaders: row.userHeaders,
      timeoutMs: row.timeoutMs,
      autoReconnect: row.autoReconnect,
      toolAllowList: row.toolAllowList,
      resourceAllowList: row.resourceAllowList,
      roots: row.roots,
      callsPerMinute: row.callsPerMinute,
      toolChanges: row.toolChanges,
      era: row.era,
      source: row.source,
      status: connection?.status ?? 'disconnected',
      error: connection?.error?.message ?? null,
      connectedAt: connection?.connectedAt === undefined ? null : new Date(connection.connectedAt).toISOString(),
      lastPingMs: connection?.lastPingMs ?? null,
      mcpVersion: protocolVersion,
      serverName: textOf(serverInfo.name),
      serverVersion: textOf(serverInfo.version),
      tools: tools.map(({ tool, canonical, quarantine }) => ({ name: tool.name, toolName: canonical, quarantine })),
      counts: {
        tools: tools.length,
        resources: resources.length,
        resourceTemplates: templates.length,
        prompts: prompts.length,
      },
      problems: server.problems.slice(0, maxProblems),
      createdAt: row.createdAt.toISOString(),
      updatedAt: row.updatedAt.toISOString(),
    };
  }
}

/** Returns the host or the program of an endpoint, for the audit. */
function hostOrCommand(endpoint: Endpoint): string {
  if (endpoint.transport === 'stdio') return endpoint.program.command;
  return URL.canParse(endpoint.url) ? new URL(endpoint.url).host : '';
}

function nameOf({ serverInfo }: Offer): string | undefined {
  const name = textOf(serverInfo.title) || textOf(serverInfo.name);
  return name.trim() === '' ? undefined : storableText(name.trim().slice(0, 200));
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function declaredError(): RialtoError {
  return new RialtoError('conflict', {
    message: 'this MCP server is declared in a configuration file and cannot be changed here',
    hint: 'change or remove it in the file, then restart the gateway',
  });
}

/** Adds a hint, because only the standard error of a program says why it ended. */
function withStderrHint({ code, message, hint, violations, data, cause }: RialtoError): RialtoError {
  const why = 'what the program wrote to standard error is in the log of the gateway (`an MCP server says`)';
  const isProgramFailure = code === 'remote_transport' || code === 'remote_timeout';
  return new RialtoError(code, {
    message,
    hint: hint ?? (isProgramFailure ? why : undefined),
    violations,
    data,
    cause,
  });
}

function noSuchServer(): RialtoError {
  return new RialtoError('not_found', { message: 'no such MCP server' });
}
