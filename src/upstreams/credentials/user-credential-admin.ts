import { Injectable } from '@nestjs/common';
import { callerOf, type CallContext } from '../../kernel/call-context.js';
import { RialtoError, type Violation } from '../../kernel/errors.js';
import { isUuid } from '../../kernel/ids.js';
import type { VerbCall } from '../../kernel/verb-bus.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { Cursors, pageOf, type Page } from '../../platform/http/cursor.js';
import type { PageQuery } from '../../platform/http/params.js';
import type { McpServerEntity } from '../storage/mcp-server.entity.js';
import { UpstreamAdmin } from '../upstream-admin.js';
import { UpstreamPool } from '../connections/upstream-pool.js';
import type { ApproveTools, Offer } from '../upstream.types.js';
import type { UserCredentialEntity } from '../storage/user-credential.entity.js';
import type {
  GiveCredential,
  OwnCredentialView,
  UserCredentialDetails,
  UserCredentialView,
} from './user-credential.types.js';
import { UserCredentialStore } from '../storage/user-credential.store.js';
import { refusalOf, UserCredentials } from './user-credentials.js';

/**
 * Manages credentials of callers for MCP servers: each caller sets and removes its own; admins list, approve and revoke
 * them.
 */
@Injectable()
export class UserCredentialAdmin {
  constructor(
    private readonly servers: UpstreamAdmin,
    private readonly store: UserCredentialStore,
    private readonly users: UserCredentials,
    private readonly pool: UpstreamPool,
    private readonly acts: AdminActs,
    private readonly cursors: Cursors,
  ) {}

  /** Returns which headers the server requires of the caller, and when the caller set them. Throws `not_found`. */
  get(ctx: CallContext, serverId: string): Promise<OwnCredentialView> {
    return this.acts.read(ctx, 'mcp.credential.get', async () => {
      const row = await this.servers.visible(ctx, serverId);
      const isThere = (await this.users.of(ctx, row)) !== undefined;
      const stored = isThere ? await this.store.find(row.id, callerOf(ctx.principal)) : null;
      return viewOf(row, stored?.createdAt);
    });
  }

  /**
   * Sets the caller's credential. It replaces the former one; running calls with that end as `unavailable`. Connects
   * first, and stores nothing when the server refuses the credential. Throws `not_found`, `unprocessable` when the
   * server takes no credentials, `invalid_params`, `credential_refused`, `denied` for anonymous callers, and what
   * UpstreamConnection.request throws.
   */
  give(ctx: CallContext, serverId: string, { headers: given }: GiveCredential): Promise<OwnCredentialView> {
    const caller = callerOf(ctx.principal);
    return this.acts.perform(
      actOf(ctx, 'set', serverId),
      async () => {
        if (ctx.principal.kind === 'anonymous')
          throw new RialtoError('denied', { message: 'callers without a token cannot have a credential' });
        const row = await this.servers.visible(ctx, serverId);
        const headers = headersOf(row, given);
        return { row, headers, offer: await this.offerFor(row, headers) };
      },
      async (tx, { row, headers, offer }) => viewOf(row, await this.users.put(tx, row, { caller, headers, offer })),
    );
  }

  /** Removes the caller's credential. Its running calls end as `unavailable`. Throws `not_found`. */
  remove(ctx: CallContext, serverId: string): Promise<void> {
    return this.removed(ctx, actOf(ctx, 'remove', serverId), serverId, { caller: callerOf(ctx.principal) });
  }

  /** Lists which callers have set a credential, in order of kind and id; for admins. Throws `not_found`. */
  list(ctx: CallContext, serverId: string, { limit, cursor }: PageQuery): Promise<Page<UserCredentialView>> {
    return this.acts.write(ctx, 'mcp.credential.list', { server: serverId }, async () => {
      const row = await this.servers.visible(ctx, serverId);
      const scope = `mcp-credentials:${row.id}`;
      const [after = ''] = cursor === undefined ? [] : this.cursors.decode(scope, cursor, 1);
      return pageOf(await this.store.page(row.id, after, limit + 1), limit, givenView, ({ caller }) =>
        this.cursors.encode(scope, [caller]),
      );
    });
  }

  /** Returns one credential with the current definitions of its quarantined tools; for admins. Throws `not_found`. */
  show(ctx: CallContext, serverId: string, id: string): Promise<UserCredentialDetails> {
    return this.acts.write(ctx, 'mcp.credential.show', { server: serverId, credential: id }, async () =>
      this.detailsOf(await this.servers.visible(ctx, serverId), id),
    );
  }

  /**
   * Ends the quarantine of tools for the user of a credential; for admins. Throws `not_found`, and as `approve` of the
   * server does.
   */
  async approve(
    ctx: CallContext,
    serverId: string,
    id: string,
    { tools }: ApproveTools,
  ): Promise<UserCredentialDetails> {
    const args = { server: serverId, credential: id, ...(tools && { tools: tools.map(({ name }) => name) }) };
    const row = await this.acts.prepareAndWrite(
      ctx,
      'mcp.credential.approve',
      args,
      () => this.servers.visible(ctx, serverId),
      async (tx, server) => {
        await this.users.approve(tx, server, knownId(id), tools);
        return server;
      },
    );
    return this.detailsOf(row, id);
  }

  /** Removes the credential of a user; for admins. Throws `not_found`, and as `remove` does. */
  revoke(ctx: CallContext, serverId: string, id: string): Promise<void> {
    const resource = { type: 'Org', id: ctx.org.slug } as const;
    const args = { server: serverId, credential: id };
    const act: VerbCall = { ctx, verb: 'mcp.credential.revoke', action: 'admin_write', resource, args };
    return this.removed(ctx, act, serverId, { id });
  }

  private async detailsOf(row: McpServerEntity, id: string): Promise<UserCredentialDetails> {
    const stored = await this.store.findOne(row.id, knownId(id));
    if (!stored) throw noSuchCredential();
    const tools = new Map(stored.offer.tools.map((tool) => [tool.name, tool]));
    const quarantine = stored.quarantinedTools.map((pin) => ({ ...pin, tool: tools.get(pin.name) ?? {} }));
    return { ...givenView(stored), quarantine };
  }

  private removed(
    ctx: CallContext,
    act: VerbCall,
    serverId: string,
    by: { caller: string } | { id: string },
  ): Promise<void> {
    return this.acts.perform(
      act,
      () => this.servers.visible(ctx, serverId),
      async (tx, row) => {
        if ('id' in by) knownId(by.id);
        const withdrawn = await this.store.withdraw(tx, row.id, by);
        if (!withdrawn) throw noSuchCredential();
        this.users.tellChanged(tx, row, withdrawn.caller);
      },
    );
  }

  private async offerFor(row: McpServerEntity, headers: Record<string, string>): Promise<Offer> {
    const offer = await this.pool.probeAs(row, headers).catch((thrown: unknown) => {
      throw refusalOf(thrown, row);
    });
    this.store.requireFit(offer);
    return offer;
  }
}

/**
 * Describes an act on the caller's own credential. It is authorized like a call of a tool of that name: a caller who
 * may call the server may set a credential for it.
 */
function actOf(ctx: CallContext, word: 'set' | 'remove', serverId: string): VerbCall {
  const resource = { type: 'Tool', id: `${serverId}__credential/${word}`, parent: serverId } as const;
  return { ctx, verb: `mcp.credential.${word}`, action: 'mcp_call', resource, args: { server: serverId } };
}

/**
 * Returns the headers with the spelling of the server. Throws `invalid_params` for a missing or unexpected header, and
 * `unprocessable` when the server takes no credentials.
 */
function headersOf(
  { userCredentials, userHeaders }: McpServerEntity,
  given: GiveCredential['headers'],
): Record<string, string> {
  if (userCredentials === 'none')
    throw new RialtoError('unprocessable', { message: 'this MCP server accepts no credentials of its users' });
  const left = new Map(Object.entries(given).map(([name, value]) => [name.toLowerCase(), value]));
  const headers: Record<string, string> = {};
  const violations: Violation[] = [];
  for (const name of userHeaders) {
    const value = left.get(name.toLowerCase());
    left.delete(name.toLowerCase());
    if (value === undefined) violations.push({ field: `headers.${name}`, description: 'is required' });
    else headers[name] = value;
  }
  for (const name of left.keys())
    violations.push({
      field: `headers.${name}`,
      description: 'is not a header that users may set for this MCP server',
    });
  if (violations.length === 0) return headers;
  throw new RialtoError('invalid_params', {
    message: `the credential consists of ${userHeaders.join(', ')}`,
    violations,
  });
}

function viewOf({ serverId, userCredentials, userHeaders }: McpServerEntity, since?: Date): OwnCredentialView {
  return { server: serverId, userCredentials, headers: userHeaders, since: since?.toISOString() ?? null };
}

function givenView({ id, caller, createdAt, quarantinedTools }: UserCredentialEntity): UserCredentialView {
  return { id, principal: principalOf(caller), since: createdAt.toISOString(), quarantine: quarantinedTools };
}

/** Throws `not_found` for a text that cannot be the id of a credential. */
function knownId(id: string): string {
  if (isUuid(id)) return id;
  throw noSuchCredential();
}

function noSuchCredential(): RialtoError {
  return new RialtoError('not_found', { message: 'no such credential' });
}

/** Splits at the first colon, because a kind has no colon. */
function principalOf(caller: string): UserCredentialView['principal'] {
  const at = caller.indexOf(':');
  return { kind: caller.slice(0, at), id: caller.slice(at + 1) };
}
