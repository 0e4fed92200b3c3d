import { Injectable } from '@nestjs/common';
import { isUuid, type OrgId } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import { Pg } from '../platform/database/pg.js';
import type { AuditEvent } from './audit-event.js';
import type { ChainLink } from './chain.js';
import { erasureIn, type ErasureRecord } from './personal/erasure-record.js';
import { sealedFactsOf } from './personal/personal-facts.js';

export interface AuditFilter {
  type?: string;
  sessionId?: string;
  /** Only events with a decision, and with this verdict. */
  decision?: 'allow' | 'deny';
  from?: string;
  to?: string;
  /** Only acts. Security facts have no decision. */
  actsOnly?: boolean;
}

export interface StoredEvent {
  id: string;
  at: Date;
  event: AuditEvent;
  sequence: string | null;
  prevHash: string | null;
  hash: string | null;
}

/** SQL for the session of an event. An act without a session is its own session, and has none in its row. */
const sessionId = `coalesce(e.session_id, case when e.event ? 'action' then e.id::text end)`;

/**
 * SQL for an event as it was written, and hashed. The body of its row has only the members without a column; rows of
 * earlier versions have all members there.
 */
export const wholeEvent = `
  jsonb_strip_nulls(
    jsonb_build_object(
      'id', e.id,
      'orgId', e.org_id,
      'at', to_char(e.at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
      'type', e.type,
      'sessionId', ${sessionId}
    )
  ) || e.event`;

const eventColumns = `e.id, e.at, ${wholeEvent} as event, c.sequence, c.prev_hash as "prevHash", c.hash`;

/** Reads audit events. Changes no row. */
@Injectable()
export class AuditEventStore {
  constructor(private readonly pg: Pg) {}

  /** Returns one page, newest first, with one extra row when there are more. */
  findEvents(
    org: OrgId,
    filter: AuditFilter,
    limit: number,
    after?: { at: string; id: string },
  ): Promise<StoredEvent[]> {
    return this.pg.rows<StoredEvent>(
      'audit-find',
      `
      select ${eventColumns}
      from audit_events e left join audit_chain c on c.event_id = e.id
      where e.org_id = :org
        and (:type::text is null or e.type = :type)
        and (:sessionId::text is null or ${sessionId} = :sessionId)
        and (:decision::text is null or (e.event->'decision'->>'allowed')::boolean = (:decision = 'allow'))
        and (:from::timestamptz is null or e.at >= :from)
        and (:to::timestamptz is null or e.at < :to)
        and (:afterAt::timestamptz is null or (e.at, e.id) < (:afterAt::timestamptz, :afterId::uuid))
        and (not :actsOnly::boolean or e.event ? 'action')
      order by e.at desc, e.id desc
      limit :limit`,
      {
        org,
        type: filter.type ?? null,
        sessionId: filter.sessionId ?? null,
        decision: filter.decision ?? null,
        from: filter.from ?? null,
        to: filter.to ?? null,
        afterAt: after?.at ?? null,
        afterId: after?.id ?? null,
        actsOnly: filter.actsOnly ?? false,
        limit: limit + 1,
      },
    );
  }

  async findEvent(org: OrgId, id: string): Promise<StoredEvent | undefined> {
    const [row] = await this.pg.rows<StoredEvent>(
      'audit-one',
      `
      select ${eventColumns}
      from audit_events e left join audit_chain c on c.event_id = e.id
      where e.org_id = :org and e.id = :id`,
      { org, id },
    );
    return row;
  }

  /**
   * Returns the links after a sequence. When the columns of an event differ from its body, or have a time that no event
   * has, the event counts as removed, because one of them was changed.
   */
  async linksAfter(org: OrgId, sequence: number, limit: number): Promise<ChainLink[]> {
    const rows = await this.pg.rows<Omit<ChainLink, 'sequence'> & { sequence: string }>(
      'audit-links',
      `
      select c.sequence, c.prev_hash as "prevHash", c.hash, ${wholeEvent} as event
      from audit_chain c
      left join audit_events e on e.id = c.event_id
        and e.org_id = c.org_id
        and e.id::text = coalesce(e.event->>'id', e.id::text)
        and e.org_id::text = coalesce(e.event->>'orgId', e.org_id::text)
        and e.type = coalesce(e.event->>'type', e.type)
        and e.at = coalesce((e.event->>'at')::timestamptz, date_trunc('milliseconds', e.at))
        and ${sessionId} is not distinct from coalesce(e.event->>'sessionId', ${sessionId})
      where c.org_id = :org and c.sequence > :sequence
      order by c.sequence
      limit :limit`,
      { org, sequence, limit },
    );
    return rows.map((row) => ({ ...row, sequence: Number(row.sequence) }));
  }

  /**
   * Counts the events without a position in the chain. `orphans` are those that do not wait for one either, so the
   * gateway did not write them.
   */
  async countUnsealed(org: OrgId): Promise<{ unsealed: number; orphans: number }> {
    const [row] = await this.pg.rows<{ unsealed: number; orphans: number }>(
      'audit-unsealed',
      `
      select count(*)::int as unsealed, (count(*) filter (where p.event_id is null))::int as orphans
      from audit_events e left join audit_pending p on p.org_id = e.org_id and p.event_id = e.id
      where e.org_id = :org and not exists (select from audit_chain c where c.event_id = e.id)`,
      { org },
    );
    return row!;
  }

  /** Returns the missing keys of the sealed facts in these links, each with the first event that has it. */
  async lostKeys(org: OrgId, links: readonly ChainLink[]): Promise<Map<string, number>> {
    const used = sealedKeysOf(links);
    if (used.size === 0) return used;
    const present = await this.pg.rows<{ id: string }>(
      'audit-present-keys',
      'select id from audit_subject_keys where org_id = :org and id = any(:ids::uuid[])',
      { org, ids: [...used.keys()].filter(isUuid) },
    );
    for (const { id } of present) used.delete(id);
    return used;
  }

  /** Returns the records of the erasure of these keys, also those without a position in the chain. */
  async erasures(org: OrgId, keys: readonly string[]): Promise<ErasureRecord[]> {
    const rows = await this.pg.rows<{ event: JsonObject }>(
      'audit-erasures',
      `
      select ${wholeEvent} as event
      from audit_events e
      where e.org_id = :org and e.type = 'audit.erased' and e.event->'keys' ?| :keys::text[]`,
      { org, keys },
    );
    return rows.flatMap(({ event }) => erasureIn(event) ?? []);
  }

  /** Returns when an org was created, also when it is deleted; undefined for an unknown one. */
  async orgSince(id: OrgId): Promise<Date | undefined> {
    const [row] = await this.pg.rows<{ since: Date }>(
      'audit-org-since',
      'select created_at as since from orgs where id = :id',
      { id },
    );
    return row?.since;
  }

  /** Returns every org that has or had an audit; deleted orgs keep theirs. */
  async orgs(): Promise<{ id: OrgId; slug: string | null }[]> {
    return this.pg.rows(
      'audit-orgs',
      `
      select id, o.slug
      from (
        select id from orgs
        union select org_id from audit_checkpoints
        union select org_id from audit_chain
        union select org_id from audit_timestamps
      ) known
      left join orgs o using (id)
      order by o.slug, id`,
    );
  }
}

/** Returns the keys of the sealed facts in these links, each with the first event that has it. */
export function sealedKeysOf(links: readonly ChainLink[]): Map<string, number> {
  const keys = new Map<string, number>();
  for (const { event, sequence } of links)
    for (const { key } of sealedFactsOf(event)) if (!keys.has(key)) keys.set(key, sequence);
  return keys;
}
