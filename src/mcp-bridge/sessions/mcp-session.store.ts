import { Injectable } from '@nestjs/common';
import { BoundedMap } from '../../kernel/bounded-map.js';
import type { CallContext } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import { isUuid, newId } from '../../kernel/ids.js';
import { storableText, type JsonObject } from '../../kernel/json.js';
import type { Notice } from '../../kernel/notices.js';
import { Notices } from '../../platform/bus/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';
import { Pg } from '../../platform/database/pg.js';

/** A session of the 2025 era: its protocol revision, the capabilities of its client, and the log level. */
export interface McpSession {
  readonly id: string;
  readonly protocolVersion: string;
  readonly capabilities: JsonObject;
  readonly logLevel?: string;
}

/** Facts that a client states when it opens a session. */
export interface McpClientFacts {
  readonly protocolVersion: string;
  /** Name and version of the client. */
  readonly client: string;
  readonly capabilities: JsonObject;
}

const idleDays = 7;
/** Largest number of sessions of one principal; the oldest are deleted, and their clients open new ones. */
const maxPerPrincipal = 1_000;
/**
 * Milliseconds for which a session is cached without reading its row. A notice of its end clears the cache sooner,
 * unless the notice is lost.
 */
const cachedMs = 10_000;
const maxKnown = 10_000;

/** Stores sessions as rows: any replica serves any session, and a restart loses none. */
@Injectable()
export class McpSessionStore {
  private readonly known = new BoundedMap<string, { session: McpSession; until: number }>(maxKnown);

  constructor(
    private readonly pg: Pg,
    private readonly notices: Notices,
  ) {}

  async openSession(ctx: CallContext, { protocolVersion, client, capabilities }: McpClientFacts): Promise<McpSession> {
    const id = newId();
    // Rows that another insert deletes are skipped: waiting for them would hold a database connection.
    await this.pg.rows(
      'mcp-session-open',
      `
      with room as (
        delete from mcp_sessions
        where id in (
          select id
          from mcp_sessions
          where id in (
            select id
            from mcp_sessions
            where org_id = :org and principal = :principal
            order by last_seen_at desc
            offset ${maxPerPrincipal - 1}
          )
          for update skip locked
        )
      )
      insert into mcp_sessions (id, org_id, principal, protocol_version, client, capabilities)
      values (:id, :org, :principal, :protocolVersion, :client, :capabilities)`,
      {
        id,
        org: ctx.org.id,
        principal: principalKey(ctx),
        protocolVersion,
        client: storableText(client, 200),
        capabilities: JSON.stringify(capabilities),
      },
    );
    return { id, protocolVersion, capabilities };
  }

  /** Finds a session of the caller; a session of another principal is treated as missing (abuse case 40). */
  async find(ctx: CallContext, id: string): Promise<McpSession | undefined> {
    const key = sessionKey(ctx, id);
    const known = this.known.get(key);
    if (known && known.until > systemClock.elapsed()) return known.session;
    const session = isUuid(id) ? await this.readRow(ctx, id) : undefined;
    if (session) this.known.set(key, { session, until: systemClock.elapsed() + cachedMs });
    else this.known.delete(key);
    return session;
  }

  @OnNotice('mcp.session-ended')
  sessionEnded({ sessionId }: Notice<'mcp.session-ended'>): void {
    this.forgetSession(sessionId);
  }

  /** Removes a session from the cache, because it changed or ended. */
  private forgetSession(id: string): void {
    for (const [key, { session }] of this.known) if (session.id === id) this.known.delete(key);
  }

  private async readRow(ctx: CallContext, id: string): Promise<McpSession | undefined> {
    const [row] = await this.pg.rows<Omit<McpSession, 'id' | 'logLevel'> & { readonly logLevel: string | null }>(
      'mcp-session-find',
      `
      with seen as (
        update mcp_sessions
        set last_seen_at = now()
        where id = :id and org_id = :org and principal = :principal and last_seen_at < now() - interval '1 hour'
      )
      select protocol_version as "protocolVersion", capabilities, log_level as "logLevel"
      from mcp_sessions
      where id = :id and org_id = :org and principal = :principal`,
      { id, org: ctx.org.id, principal: principalKey(ctx) },
    );
    if (!row) return undefined;
    const { protocolVersion, capabilities, logLevel } = row;
    return { id, protocolVersion, capabilities, ...(logLevel !== null && { logLevel }) };
  }

  /** Stores the log level; other processes use it some seconds later, when their cache expires. */
  async setLogLevel(id: string, level: string): Promise<void> {
    await this.pg.rows('mcp-session-level', `update mcp_sessions set log_level = :level where id = :id`, { id, level });
    this.forgetSession(id);
  }

  /** Stores an answer. Returns false for a second answer to the same question. */
  async keepAnswer(session: string, question: string, answer: JsonObject): Promise<boolean> {
    const rows = await this.pg.rows(
      'mcp-answer-keep',
      `
      insert into mcp_answers (id, session_id, answer)
      select :question, id, :answer
      from mcp_sessions
      where id = :session
      on conflict do nothing
      returning id`,
      { question, session, answer: JSON.stringify(answer) },
    );
    return rows.length > 0;
  }

  async takeStoredAnswer(question: string): Promise<JsonObject | undefined> {
    const [row] = await this.pg.rows<{ answer: JsonObject }>(
      'mcp-answer-take',
      `
      delete from mcp_answers
      where id = :question
      returning answer`,
      { question },
    );
    return row?.answer;
  }

  /** Ends a session of the caller, and notifies the processes that hold its streams. */
  async endSession(ctx: CallContext, id: string): Promise<void> {
    const rows = isUuid(id)
      ? await this.pg.rows(
          'mcp-session-end',
          `
          delete from mcp_sessions
          where id = :id and org_id = :org and principal = :principal
          returning id`,
          { id, org: ctx.org.id, principal: principalKey(ctx) },
        )
      : [];
    if (rows.length > 0) this.notices.tell(undefined, 'mcp.session-ended', { orgId: ctx.org.id, sessionId: id });
  }

  async dropIdle(): Promise<void> {
    await this.pg.rows(
      'mcp-session-idle',
      `delete from mcp_sessions where last_seen_at < now() - interval '${idleDays} days'`,
    );
    await this.pg.rows('mcp-answers-late', "delete from mcp_answers where created_at < now() - interval '1 hour'");
  }
}

function principalKey({ principal }: CallContext): string {
  return `${principal.kind}:${principal.id}`;
}

function sessionKey(ctx: CallContext, id: string): string {
  return `${ctx.org.id} ${id} ${principalKey(ctx)}`;
}
