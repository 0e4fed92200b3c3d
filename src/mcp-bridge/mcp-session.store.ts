import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import { isUuid, newId } from '../kernel/ids.js';
import { storableText } from '../kernel/json.js';
import { Pg } from '../platform/database/pg.js';

/** A session of the 2025 era: whose it is and which revision it speaks. */
export interface McpSession {
  readonly id: string;
  readonly protocolVersion: string;
}

const idleDays = 7;
/** How long a session is believed without its row; the notice of its end comes sooner, unless it is lost. */
const believedMs = 10_000;
const maxKnown = 10_000;

/** Sessions as rows: any replica serves any session, and a restart forgets none. */
@Injectable()
export class McpSessionStore {
  private readonly known = new Map<string, { session: McpSession; until: number }>();

  constructor(private readonly pg: Pg) {}

  async open(ctx: CallContext, protocolVersion: string, client: string): Promise<McpSession> {
    const id = newId();
    await this.pg.rows(
      'mcp-session-open',
      'insert into mcp_sessions (id, org_id, principal, protocol_version, client) values ($1, $2, $3, $4, $5)',
      [id, ctx.org.id, ownerOf(ctx), protocolVersion, storableText(client, 200)],
    );
    return { id, protocolVersion };
  }

  /** The caller's own session; another principal's looks absent (abuse case 40). */
  async find(ctx: CallContext, id: string): Promise<McpSession | undefined> {
    const key = keyOf(ctx, id);
    const known = this.known.get(key);
    if (known && known.until > systemClock.elapsed()) return known.session;
    const session = isUuid(id) ? await this.read(ctx, id) : undefined;
    this.known.delete(key);
    if (!session) return undefined;
    this.known.set(key, { session, until: systemClock.elapsed() + believedMs });
    if (this.known.size > maxKnown) this.known.delete(this.known.keys().next().value!);
    return session;
  }

  /** A session ended, here or in another process. */
  forget(id: string): void {
    for (const [key, { session }] of this.known) if (session.id === id) this.known.delete(key);
  }

  private async read(ctx: CallContext, id: string): Promise<McpSession | undefined> {
    const [row] = await this.pg.rows<{ protocol_version: string }>(
      'mcp-session-find',
      `with seen as (update mcp_sessions set last_seen_at = now() where id = $1 and org_id = $2 and principal = $3
         and last_seen_at < now() - interval '1 hour')
       select protocol_version from mcp_sessions where id = $1 and org_id = $2 and principal = $3`,
      [id, ctx.org.id, ownerOf(ctx)],
    );
    return row && { id, protocolVersion: row.protocol_version };
  }

  async end(ctx: CallContext, id: string): Promise<boolean> {
    const rows = isUuid(id)
      ? await this.pg.rows(
          'mcp-session-end',
          'delete from mcp_sessions where id = $1 and org_id = $2 and principal = $3 returning id',
          [id, ctx.org.id, ownerOf(ctx)],
        )
      : [];
    return rows.length > 0;
  }

  async dropIdle(): Promise<void> {
    await this.pg.rows(
      'mcp-session-idle',
      `delete from mcp_sessions where last_seen_at < now() - interval '${idleDays} days'`,
    );
  }
}

function ownerOf({ principal }: CallContext): string {
  return `${principal.kind}:${principal.id}`;
}

function keyOf(ctx: CallContext, id: string): string {
  return `${ctx.org.id} ${id} ${ownerOf(ctx)}`;
}
