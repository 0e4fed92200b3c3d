import { Injectable } from '@nestjs/common';
import type { OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import { queryIn, type Tx } from '../../platform/database/tx.js';

/** Counts what the trust tier of an org limits, for all processes together. */
@Injectable()
export class TrustQuotaStore {
  constructor(private readonly pg: Pg) {}

  /** Counts one message of this day (UTC, by the clock of the database). Returns false when `most` are counted. */
  async countMessage(org: OrgId, most: number): Promise<boolean> {
    const rows = await this.pg.rows(
      'org-messages-count',
      `
      insert into org_messages as m (org_id, day, messages)
      values (:org, (now() at time zone 'utc')::date, 1)
      on conflict (org_id) do update set
        messages = case when m.day = excluded.day then m.messages + 1 else 1 end,
        day = excluded.day
      where m.day <> excluded.day or m.messages < :most
      returning messages`,
      { org, most },
    );
    return rows.length > 0;
  }

  /** Counts the different groups of the members and keys of an org, inside the transaction that changed them. */
  async countGroups(tx: Tx, org: OrgId): Promise<number> {
    const [row] = await queryIn<{ count: number }[]>(
      tx,
      `
      select count(*)::int as count
      from (
        select unnest(groups) as name
        from members
        where org_id = :org
        union
        select unnest(groups)
        from api_keys
        where org_id = :org and revoked_at is null
      ) as used`,
      { org },
    );
    return row!.count;
  }
}
