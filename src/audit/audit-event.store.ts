import { Injectable } from '@nestjs/common';
import type { OrgId } from '../kernel/ids.js';
import { Pg } from '../platform/database/pg.js';
import type { AuditEvent } from './audit-event.js';
import type { ChainLink } from './chain.js';

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
  prev_hash: string | null;
  hash: string | null;
}

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
      `select e.id, e.at, e.event, c.sequence, c.prev_hash, c.hash from audit_events e left join audit_chain c on c.event_id = e.id
       where e.org_id = $1 and ($2::text is null or e.type = $2) and ($3::text is null or e.session_id = $3)
         and ($4::text is null or (e.event->'decision'->>'allowed')::boolean = ($4 = 'allow'))
         and ($5::timestamptz is null or e.at >= $5) and ($6::timestamptz is null or e.at < $6)
         and ($7::timestamptz is null or (e.at, e.id) < ($7::timestamptz, $8::uuid)) and (not $9::boolean or e.event ? 'action')
       order by e.at desc, e.id desc limit $10`,
      [
        org,
        filter.type ?? null,
        filter.sessionId ?? null,
        filter.decision ?? null,
        filter.from ?? null,
        filter.to ?? null,
        after?.at ?? null,
        after?.id ?? null,
        filter.actsOnly ?? false,
        limit + 1,
      ],
    );
  }

  async findEvent(org: OrgId, id: string): Promise<StoredEvent | undefined> {
    const [row] = await this.pg.rows<StoredEvent>(
      'audit-one',
      `select e.id, e.at, e.event, c.sequence, c.prev_hash, c.hash from audit_events e left join audit_chain c on c.event_id = e.id where e.org_id = $1 and e.id = $2`,
      [org, id],
    );
    return row;
  }

  /**
   * Returns the links after a sequence. When the columns of an event differ from its body, the event counts as
   * removed, because one of them was changed.
   */
  async linksAfter(org: OrgId, sequence: number, limit: number): Promise<ChainLink[]> {
    const rows = await this.pg.rows<{ sequence: string; prev_hash: string; hash: string; event: unknown }>(
      'audit-links',
      `select c.sequence, c.prev_hash, c.hash, e.event from audit_chain c
       left join audit_events e on e.id = c.event_id and e.org_id = c.org_id and e.id::text = e.event->>'id' and e.org_id::text = e.event->>'orgId'
         and e.type = e.event->>'type' and e.at = (e.event->>'at')::timestamptz and e.session_id is not distinct from e.event->>'sessionId'
       where c.org_id = $1 and c.sequence > $2 order by c.sequence limit $3`,
      [org, sequence, limit],
    );
    return rows.map((row) => ({
      sequence: Number(row.sequence),
      prevHash: row.prev_hash,
      hash: row.hash,
      event: row.event,
    }));
  }

  /**
   * Counts the events without a position in the chain. `orphans` are those that do not wait for one either, so the
   * gateway did not write them.
   */
  async countUnsealed(org: OrgId): Promise<{ unsealed: number; orphans: number }> {
    const [row] = await this.pg.rows<{ unsealed: number; orphans: number }>(
      'audit-unsealed',
      `select count(*)::int as unsealed, (count(*) filter (where p.event_id is null))::int as orphans
       from audit_events e left join audit_pending p on p.org_id = e.org_id and p.event_id = e.id
       where e.org_id = $1 and not exists (select from audit_chain c where c.event_id = e.id)`,
      [org],
    );
    return row!;
  }

  /** Returns every org that has or had an audit; deleted orgs keep theirs. */
  async orgs(): Promise<{ id: OrgId; slug: string | null }[]> {
    return this.pg.rows(
      'audit-orgs',
      `select id, o.slug from (select id from orgs union select org_id from audit_checkpoints union select org_id from audit_chain) known
       left join orgs o using (id) order by o.slug, id`,
    );
  }
}
