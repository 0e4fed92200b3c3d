import { Injectable } from '@nestjs/common';
import { callerOf, type CallContext } from '../../kernel/call-context.js';
import { RialtoError, type Violation } from '../../kernel/errors.js';
import type { VerbCall } from '../../kernel/verb-bus.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { UpstreamPool } from '../connections/upstream-pool.js';
import { ServerViews } from '../server-views.js';
import type { McpServerEntity } from '../storage/mcp-server.entity.js';
import { requireFit } from '../storage/user-credential.store.js';
import type { Offer } from '../upstream.types.js';
import { CredentialChanges } from './credential-changes.js';
import type { GiveCredential, OwnCredentialView } from './user-credential.types.js';
import { asCredentialRefusal, UserCredentials } from './user-credentials.js';

/** Manages the credential of each caller for MCP servers: the caller itself sets and removes it. */
@Injectable()
export class OwnCredentialAdmin {
  constructor(
    private readonly servers: ServerViews,
    private readonly users: UserCredentials,
    private readonly changes: CredentialChanges,
    private readonly pool: UpstreamPool,
    private readonly acts: AdminActs,
  ) {}

  /** Returns which headers the server requires of the caller, and when the caller set them. Throws `not_found`. */
  get(ctx: CallContext, serverId: string): Promise<OwnCredentialView> {
    return this.acts.read(ctx, 'mcp.credential.get', async () => {
      const row = await this.servers.requireVisible(ctx, serverId);
      return credentialView(row, await this.users.givenAt(ctx, row));
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
        const row = await this.servers.requireVisible(ctx, serverId);
        const headers = headersOf(row, given);
        return { row, headers, offer: await this.offerFor(row, headers) };
      },
      async (tx, { row, headers, offer }) =>
        credentialView(row, await this.changes.put(tx, row, { caller, headers, offer })),
    );
  }

  /** Removes the caller's credential. Its running calls end as `unavailable`. Throws `not_found`. */
  remove(ctx: CallContext, serverId: string): Promise<void> {
    return this.acts.perform(
      actOf(ctx, 'remove', serverId),
      () => this.servers.requireVisible(ctx, serverId),
      (tx, row) => this.changes.withdraw(tx, row, { caller: callerOf(ctx.principal) }),
    );
  }

  private async offerFor(row: McpServerEntity, headers: Record<string, string>): Promise<Offer> {
    const offer = await this.pool.probeAs(row, headers).catch((thrown: unknown) => {
      throw asCredentialRefusal(thrown, row);
    });
    requireFit(offer);
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

function credentialView({ serverId, userCredentials, userHeaders }: McpServerEntity, since?: Date): OwnCredentialView {
  return { server: serverId, userCredentials, headers: userHeaders, since: since?.toISOString() ?? null };
}
