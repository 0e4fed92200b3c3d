import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import type { VerbCall } from '../../kernel/verb-bus.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { Cursors, pageOf, type Page } from '../../platform/http/cursor.js';
import type { PageQuery } from '../../platform/http/params.js';
import type { McpServerEntity } from '../storage/mcp-server.entity.js';
import { ServerViews } from '../server-views.js';
import type { ApproveTools } from '../upstream.types.js';
import type { UserCredentialEntity } from '../storage/user-credential.entity.js';
import { CredentialChanges, noSuchCredential, requireCredentialId } from './credential-changes.js';
import type { UserCredentialDetails, UserCredentialView } from './user-credential.types.js';
import { UserCredentialStore } from '../storage/user-credential.store.js';

/** Manages the credentials of all callers for MCP servers: admins list, approve and revoke them. */
@Injectable()
export class UserCredentialAdmin {
  constructor(
    private readonly servers: ServerViews,
    private readonly store: UserCredentialStore,
    private readonly changes: CredentialChanges,
    private readonly acts: AdminActs,
    private readonly cursors: Cursors,
  ) {}

  /** Lists which callers have set a credential, in order of kind and id; for admins. Throws `not_found`. */
  list(ctx: CallContext, serverId: string, { limit, cursor }: PageQuery): Promise<Page<UserCredentialView>> {
    return this.acts.record(ctx, 'mcp.credential.list', { server: serverId }, async () => {
      const row = await this.servers.requireVisible(ctx, serverId);
      const scope = `mcp-credentials:${row.id}`;
      const [after = ''] = cursor === undefined ? [] : this.cursors.decode(scope, cursor, 1);
      return pageOf(await this.store.findPage(row.id, after, limit + 1), limit, givenView, ({ caller }) =>
        this.cursors.encode(scope, [caller]),
      );
    });
  }

  /** Returns one credential with the current definitions of its quarantined tools; for admins. Throws `not_found`. */
  show(ctx: CallContext, serverId: string, id: string): Promise<UserCredentialDetails> {
    return this.acts.record(ctx, 'mcp.credential.show', { server: serverId, credential: id }, async () =>
      this.detailsOf(await this.servers.requireVisible(ctx, serverId), id),
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
      () => this.servers.requireVisible(ctx, serverId),
      async (tx, server) => {
        await this.changes.approve(tx, server, id, tools);
        return server;
      },
    );
    return this.detailsOf(row, id);
  }

  /** Removes the credential of a user; for admins. Throws `not_found`. */
  revoke(ctx: CallContext, serverId: string, id: string): Promise<void> {
    const resource = { type: 'Org', id: ctx.org.slug } as const;
    const args = { server: serverId, credential: id };
    const act: VerbCall = { ctx, verb: 'mcp.credential.revoke', action: 'admin_write', resource, args };
    return this.acts.perform(
      act,
      () => this.servers.requireVisible(ctx, serverId),
      (tx, row) => this.changes.withdraw(tx, row, { id }),
    );
  }

  private async detailsOf(row: McpServerEntity, id: string): Promise<UserCredentialDetails> {
    const stored = await this.store.findOne(row.id, requireCredentialId(id));
    if (!stored) throw noSuchCredential();
    const tools = new Map(stored.offer.tools.map((tool) => [tool.name, tool]));
    const quarantine = stored.quarantinedTools.map((pin) => ({ ...pin, tool: tools.get(pin.name) ?? {} }));
    return { ...givenView(stored), quarantine };
  }
}

function givenView({ id, caller, createdAt, quarantinedTools }: UserCredentialEntity): UserCredentialView {
  return { id, principal: principalOf(caller), since: createdAt.toISOString(), quarantine: quarantinedTools };
}

/** Splits at the first colon, because a kind has no colon. */
function principalOf(caller: string): UserCredentialView['principal'] {
  const at = caller.indexOf(':');
  return { kind: caller.slice(0, at), id: caller.slice(at + 1) };
}
