import { Injectable } from '@nestjs/common';
import type { EventSink } from '../../tasks/event-sink.port.js';

/**
 * What of an event is owed to whom, written by the statement that writes the event: all or nothing. A task without
 * configurations costs one probe of an index. Behind a failing delivery later ones wait for its next try, so that no sweep
 * looks at them before; an inexact time is harmless, for only the first of a configuration is ever taken.
 */
@Injectable()
export class DeliverySink implements EventSink {
  readonly name = 'webhooks';

  sql(events: string): string {
    return `insert into webhook_deliveries (id, org_id, task_id, config_id, seq, next_at)
      select gen_random_uuid(), appended.org_id, appended.task_id, c.id, appended.seq, coalesce((
        select d.next_at from webhook_deliveries d
        where d.task_id = appended.task_id and d.config_id = c.id and d.status = 'pending' order by d.seq limit 1), now())
      from ${events} appended
      cross join lateral (select id from push_configs where task_id = appended.task_id and state <> 'disabled' offset 0) c`;
  }
}
