import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import type { McpServerEntity } from '../storage/mcp-server.entity.js';
import type { ServerConnections } from '../connections/server-connections.js';
import type { Load } from '../storage/tool-choice.js';
import { UpstreamPool } from '../connections/upstream-pool.js';
import { asCredentialRefusal, UserCredentials } from './user-credentials.js';

export interface ChosenConnections {
  readonly connections: ServerConnections;
  /** True when the connections send the caller's own credential. */
  readonly isOwn: boolean;
}

/**
 * Picks the connection for a caller: its own when the server has per-user credentials, else the shared one. A
 * credential is never used for another caller.
 */
@Injectable()
export class CallerConnections {
  constructor(
    private readonly pool: UpstreamPool,
    private readonly users: UserCredentials,
  ) {}

  /** Returns the connections for a call of the caller. Throws as UpstreamPool.to does, and `credential_required`. */
  async chooseConnections(ctx: CallContext, server: McpServerEntity): Promise<ChosenConnections> {
    const user = server.userCredentials === 'none' ? undefined : await this.users.requireCredential(ctx, server);
    return { connections: this.pool.to(server, user), isOwn: user !== undefined };
  }

  /**
   * Runs work with the connections of the caller. Throws as `chooseConnections` and the work do, and
   * `credential_refused`.
   */
  async use<Result>(
    ctx: CallContext,
    server: McpServerEntity,
    work: (connections: ServerConnections) => Promise<Result>,
  ): Promise<Result> {
    const { connections, isOwn } = await this.chooseConnections(ctx, server);
    if (!isOwn) return work(connections);
    try {
      return await work(connections);
    } catch (thrown) {
      throw asCredentialRefusal(thrown, server);
    }
  }

  /**
   * Subscribes to changes of a resource until the returned function is called. Throws as UpstreamPool.to does, and
   * `credential_required`.
   */
  async watchResource(ctx: CallContext, server: McpServerEntity, uri: string): Promise<() => void> {
    return this.pool.watch(server, uri, await this.users.requireCredential(ctx, server));
  }

  /** Throws `credential_required` when the caller must set a credential first. */
  async requireUse(ctx: CallContext, server: McpServerEntity): Promise<void> {
    await this.users.requireCredential(ctx, server);
  }

  /** Returns whether there is a connection that the caller may use. */
  async mayUse(ctx: CallContext, server: McpServerEntity): Promise<boolean> {
    return server.userCredentials !== 'required' || (await this.users.credentialFor(ctx, server)) !== undefined;
  }

  /**
   * Keeps the caller's connection open while it is idle, until the returned function is called. Throws
   * `credential_required`.
   */
  async attend(ctx: CallContext, server: McpServerEntity): Promise<() => void> {
    return this.pool.attend(server, await this.users.requireCredential(ctx, server));
  }

  /** Returns the load of this process on the caller's connections. */
  async loadOf(ctx: CallContext, server: McpServerEntity): Promise<Load> {
    return this.pool.loadOf(server, await this.users.credentialFor(ctx, server));
  }
}
