import { Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { Pg } from '../../platform/database/pg.js';

const maxPerSession = 100;

/** A resource, identified by the row of its server and its URI. */
export interface Watched {
  readonly server: string;
  readonly uri: string;
}

/** Stores the resource subscriptions of sessions of the 2025 era. */
@Injectable()
export class McpSubscriptionStore {
  constructor(private readonly pg: Pg) {}

  /** Adds a subscription. Throws `unprocessable` above the limit of a session. */
  async add(session: string, { server, uri }: Watched): Promise<void> {
    const [row] = await this.pg.rows<{ known: string }>(
      'mcp-subscription-add',
      `
      with added as (
        insert into mcp_subscriptions (session_id, server, uri)
        select s.id, m.id, :uri
        from mcp_sessions s, mcp_servers m
        where s.id = :session
          and m.id = :server
          and (select count(*) from mcp_subscriptions where session_id = :session) < ${maxPerSession}
        on conflict do nothing
        returning 1
      )
      select (select count(*) from added)
        + (select count(*) from mcp_subscriptions where session_id = :session and server = :server and uri = :uri)
        as known`,
      { session, server, uri },
    );
    if (Number(row!.known) > 0) return;
    throw new RialtoError('unprocessable', {
      message: `a session may subscribe to at most ${maxPerSession} resources`,
    });
  }

  async remove(session: string, uri: string): Promise<void> {
    await this.pg.rows(
      'mcp-subscription-remove',
      `
      delete from mcp_subscriptions
      where session_id = :session and uri = :uri`,
      { session, uri },
    );
  }

  /** Returns the subscriptions of a session. */
  subscriptionsOf(session: string): Promise<Watched[]> {
    return this.pg.rows<Watched>(
      'mcp-subscriptions',
      `
      select server, uri
      from mcp_subscriptions
      where session_id = :session`,
      { session },
    );
  }
}
