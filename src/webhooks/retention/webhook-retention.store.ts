import { Injectable } from '@nestjs/common';
import { Pg } from '../../platform/database/pg.js';
import { terminalStates, wordOf } from '../../protocol/a2a/states.js';
import { hasPending } from '../delivery/delivery.sink.js';

const batch = 5_000;
const ends = [...terminalStates].map((state) => `'${wordOf(state)}'`).join(', ');

/** Deletes webhook data past its retention, in batches, except what a waiting delivery needs. */
@Injectable()
export class WebhookRetentionStore {
  constructor(private readonly pg: Pg) {}

  async dropDeliveries(days: number): Promise<void> {
    await this.pg.rows(
      'delivery-retention',
      `
      with gone as (
        delete from webhook_deliveries
        where id in (
          select id
          from webhook_deliveries
          where created_at < now() - make_interval(days => :days::int) and status <> 'pending'
          order by created_at
          limit ${batch}
        )
        returning id
      )
      delete from webhook_attempts a
      using gone
      where a.delivery_id = gone.id`,
      { days },
    );
  }

  async dropConfigs(days: number): Promise<void> {
    await this.pg.rows(
      'push-config-retention',
      `
      delete from push_configs c
      using (
        select old.task_id, old.id
        from push_configs old
        where not ${hasPending('old.task_id')}
          and old.created_at < now() - make_interval(days => :days::int) and not exists (
          select
          from a2a_tasks t
          where t.id = old.task_id
            and (t.status_state not in (${ends}) or t.updated_at > now() - make_interval(days => :days::int))
        )
        order by old.created_at
        limit ${batch}
      ) old
      where c.task_id = old.task_id and c.id = old.id`,
      { days },
    );
  }
}
