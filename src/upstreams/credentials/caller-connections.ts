import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import type { McpServerEntity } from '../storage/mcp-server.entity.js';
import type { ServerConnections } from '../connections/server-connections.js';
import type { Load } from '../storage/tool-choice.js';
import { UpstreamPool } from '../connections/upstream-pool.js';
import { refusalOf, UserCredentials } from './user-credentials.js';

/** The lines of callers to MCP servers: whoever calls decides whose they are, so that nobody goes by the credential of another. */
@Injectable()
export class CallerConnections {
  constructor(
    private readonly pool: UpstreamPool,
    private readonly users: UserCredentials,
  ) {}

  /** Works with the lines of the caller. Throws what the work throws, `credential_required`, and `credential_refused`. */
  async use<Result>(
    ctx: CallContext,
    server: McpServerEntity,
    work: (lines: ServerConnections) => Promise<Result>,
  ): Promise<Result> {
    const user = server.userCredentials === 'none' ? undefined : await this.users.needed(ctx, server);
    if (!user) return work(this.pool.to(server));
    try {
      return await work(this.pool.to(server, user));
    } catch (thrown) {
      throw refusalOf(thrown, server);
    }
  }

  /** Hears of the changes of a resource, until what it returns is called. Throws as UpstreamPool.to does, and `credential_required`. */
  async watch(ctx: CallContext, server: McpServerEntity, uri: string): Promise<() => void> {
    return this.pool.watch(server, uri, await this.users.needed(ctx, server));
  }

  /** Throws `credential_required`. */
  async requireUse(ctx: CallContext, server: McpServerEntity): Promise<void> {
    await this.users.needed(ctx, server);
  }

  /** Whether the caller's calls have a line to go by. */
  async mayUse(ctx: CallContext, server: McpServerEntity): Promise<boolean> {
    return server.userCredentials !== 'required' || (await this.users.of(ctx, server)) !== undefined;
  }

  /** Lets the caller's line be idle, until what it returns is called. Throws `credential_required`. */
  async attend(ctx: CallContext, server: McpServerEntity): Promise<() => void> {
    return this.pool.attend(server, await this.users.needed(ctx, server));
  }

  /** What this process has at work on the caller's lines. */
  async loadOf(ctx: CallContext, server: McpServerEntity): Promise<Load> {
    return this.pool.loadOf(server, await this.users.of(ctx, server));
  }
}
