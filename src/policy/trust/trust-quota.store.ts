import { Injectable } from '@nestjs/common';
import type { OrgId } from '../../kernel/ids.js';
import type { TrustTier } from '../../kernel/trust.js';
import { Pg } from '../../platform/database/pg.js';
import { queryIn, type Tx } from '../../platform/database/tx.js';

/** Counts what the trust tier of an org limits, for all processes together. */
@Injectable()
export class TrustQuotaStore {
  constructor(private readonly pg: Pg) {}

  /**
   * Counts one message of this day (UTC, by the clock of the database). Returns the day, or undefined when `most` are
   * counted.
   */
  async countMessage(org: OrgId, most: number): Promise<string | undefined> {
    const [row] = await this.pg.rows<{ day: string }>(
      'org-messages-count',
      `
      insert into org_messages as m (org_id, day, messages)
      values (:org, (now() at time zone 'utc')::date, 1)
      on conflict (org_id) do update set
        messages = case when m.day = excluded.day then m.messages + 1 else 1 end,
        day = excluded.day
      where m.day <> excluded.day or m.messages < :most
      returning day::text`,
      { org, most },
    );
    return row?.day;
  }

  /** Removes one message from the count of a day, unless another day has begun. */
  async uncountMessage(org: OrgId, day: string): Promise<void> {
    await this.pg.rows(
      'org-messages-uncount',
      `
      update org_messages
      set messages = messages - 1
      where org_id = :org and day = :day::date and messages > 0`,
      { org, day },
    );
  }

  /** Returns the tier of an org, and keeps it and the other counts of the org until the transaction ends. */
  async lockTier(tx: Tx, org: OrgId): Promise<TrustTier> {
    const [row] = await queryIn<{ tier: TrustTier }[]>(
      tx,
      `
      select trust_tier as tier
      from orgs
      where id = :org
      for no key update`,
      { org },
    );
    return row!.tier;
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
