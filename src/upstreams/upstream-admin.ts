import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { storableText } from '../kernel/json.js';
import { AdminActs } from '../platform/bus/admin-acts.js';
import { ServerChanges } from './catalog/server-changes.js';
import type { McpServerEntity } from './storage/mcp-server.entity.js';
import { completed, nothingYet } from './storage/offer.js';
import { endpointChanged, endpointFrom, SealedEndpoints, type Endpoint } from './storage/sealed-endpoints.js';
import { columnsOf } from './storage/server-columns.js';
import type { ProgramOwner } from './programs/program-caches.js';
import { UpstreamPool, type Probed } from './connections/upstream-pool.js';
import { noSuchServer, ServerViews } from './server-views.js';
import type { ApproveTools, ChangeServer, Offer, RegisterServer, ServerView } from './upstream.types.js';

type Used = Pick<McpServerEntity, 'userCredentials' | 'roots' | 'era' | 'autoReconnect'>;
/** Connects to a server and reads what it offers. */
type Probe = (owner: ProgramOwner, endpoint: Endpoint, used: Used) => Promise<Offer>;

/** Registers, changes and removes MCP servers for admins. */
@Injectable()
export class UpstreamAdmin {
  constructor(
    private readonly views: ServerViews,
    private readonly endpoints: SealedEndpoints,
    private readonly changes: ServerChanges,
    private readonly pool: UpstreamPool,
    private readonly acts: AdminActs,
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
          await this.changes.requireFree(owner);
          const offer = await probe(owner, endpoint, columnsOf(input));
          // A caller that received a timeout must not find the server registered later.
          if (ctx.signal?.aborted) throw new RialtoError('canceled');
          return offer;
        },
        (tx, offer) => {
          const name = input.name ?? nameOf(offer) ?? serverId;
          return this.changes.add(tx, ctx.org.id, { serverId, name, offer, ...columnsOf(input) }, endpoint);
        },
      );
    return this.views.viewOf(ctx, await this.writeProbed(write));
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
          const row = await this.views.requireVisible(ctx, serverId);
          const known = this.endpoints.endpointOf(row);
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
        (tx, { row, moved }) => {
          const lists = { toolAllowList, resourceAllowList, toolChanges };
          const use = { ...users, ...lists, timeoutMs, autoReconnect, roots, callsPerMinute, era };
          return this.changes.change(tx, row, { name, ...use, ...(moved && { offer: moved.offer }) }, moved?.endpoint);
        },
      );
    return this.views.viewOf(ctx, await this.writeProbed(write));
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
        const row = await this.views.requireVisible(ctx, serverId);
        this.pool.closeServer(row.id);
        // A server with per-user credentials is read again for each user at that user's next call.
        const isReadForAll = row.userCredentials !== 'required';
        if (!isReadForAll) return { row, offer: row.offer };
        // The server may speak another revision now: the remembered fallback to `initialize` is dropped.
        const unknown = { ...row, offer: { ...row.offer, wantsInitialize: undefined } };
        return { row, offer: completed(await this.pool.to(unknown).shared.offer(), row.offer) };
      },
      (tx, { row, offer }) => this.changes.change(tx, row, { offer }),
    );
    return this.views.viewOf(ctx, fresh);
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
      () => this.views.requireVisible(ctx, serverId),
      (tx, row) => this.changes.approve(tx, row, tools),
    );
    return this.views.viewOf(ctx, approved);
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
        const row = await this.views.requireVisible(ctx, serverId);
        if (row.source === 'config') throw declaredError();
        return row;
      },
      async (tx, row) => {
        if (!(await this.changes.remove(tx, row))) throw noSuchServer();
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
        throw endpoint.transport === 'stdio' ? withStderrHint(RialtoError.from(thrown)) : withGivenHost(thrown);
      });
    this.pool.checkEndpoint(endpoint);
    return undefined;
  }
}

/** Returns the host or the program of an endpoint, for the audit. */
function hostOrCommand(endpoint: Endpoint): string {
  if (endpoint.transport === 'stdio') return endpoint.program.command;
  return URL.canParse(endpoint.url) ? new URL(endpoint.url).host : '';
}

function nameOf({ serverInfo }: Offer): string | undefined {
  const name = textOrEmpty(serverInfo.title) || textOrEmpty(serverInfo.name);
  return name.trim() === '' ? undefined : storableText(name.trim().slice(0, 200));
}

function textOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function declaredError(): RialtoError {
  return new RialtoError('conflict', {
    message: 'this MCP server is declared in a configuration file and cannot be changed here',
    hint: 'change or remove it in the file, then restart the gateway',
  });
}

/** Names the host of a refused address again, which the admin gave. */
function withGivenHost(thrown: unknown): unknown {
  const { code, hint, data, cause } = RialtoError.from(thrown);
  if (code !== 'url_not_allowed' || !(cause instanceof RialtoError)) return thrown;
  return new RialtoError(code, { message: cause.message, hint, data, cause });
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
