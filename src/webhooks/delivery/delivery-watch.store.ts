import { Injectable } from '@nestjs/common';
import { Pg } from '../../platform/database/pg.js';

const perSample = 1_000;

/** Checks the invariant about the order of deliveries in their rows. */
@Injectable()
export class DeliveryWatchStore {
  constructor(private readonly pg: Pg) {}

  /**
   * Finds deliveries that were overtaken, in a sample of the thousand created from `seconds` ago on: the delivery right
   * before a delivered one was delivered later, or not at all. Ignores deliveries that were deferred, retried or
   * replayed, because a replay chooses its own order.
   */
  async overtaken(seconds: number): Promise<string[]> {
    const rows = await this.pg.rows<{ id: string }>(
      'delivery-overtaken',
      `
      with sample as materialized (
        select task_id, config_id, seq, status, ended_at
        from webhook_deliveries
        where created_at > now() - make_interval(secs => :seconds::integer)
        order by created_at
        limit ${perSample}
      )
      select e.id
      from sample s
      cross join lateral (
        select d.*
        from webhook_deliveries d
        where d.task_id = s.task_id and d.config_id = s.config_id and d.seq < s.seq
        order by d.seq desc
        limit 1
      ) e
      where s.status = 'delivered' and e.next_at = e.created_at
        and (
          (e.status = 'delivered' and e.attempts = 1 and e.ended_at > s.ended_at)
          or (e.status = 'pending' and e.attempts = 0)
        )`,
      { seconds },
    );
    return rows.map(({ id }) => id);
  }
}
