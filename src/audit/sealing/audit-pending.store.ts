import { Injectable } from '@nestjs/common';
import type { OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import { mostCounted, type Waiting } from '../../platform/telemetry/metrics.js';

/** Reads the events that wait for their place in the chain. */
@Injectable()
export class AuditPendingStore {
  constructor(private readonly pg: Pg) {}

  /**
   * Returns the number of events that are not sealed, and the longest time that the first event of an org has waited.
   * Uses the index.
   */
  async waiting(): Promise<Waiting> {
    const [row] = await this.pg.rows<Waiting>(
      'audit-waits',
      `
      select
        (select count(*) from (select from audit_pending limit ${mostCounted}) p)::int as count,
        (select coalesce(extract(epoch from now() - min(first.since)), 0)::float8
         from orgs o
         cross join lateral (
           select p.since from audit_pending p where p.org_id = o.id order by p.event_id limit 1
         ) first) as "lagSeconds"`,
    );
    return row!;
  }

  /** Returns the orgs with waiting events. */
  async pendingOrgs(): Promise<OrgId[]> {
    const rows = await this.pg.rows<{ org: OrgId }>(
      'audit-pending-orgs',
      `
      select id as org
      from orgs o
      where exists (select from audit_pending p where p.org_id = o.id)`,
    );
    return rows.map(({ org }) => org);
  }
}
