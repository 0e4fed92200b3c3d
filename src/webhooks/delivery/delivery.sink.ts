import { Injectable } from '@nestjs/common';
import type { EventSink } from '../../tasks/event-sink.port.js';

/** SQL condition: a delivery of this task waits, and its body may still have to be made from the log of the task. */
export const hasPending = (taskId: string): string =>
  `exists (select from webhook_deliveries w where w.task_id = ${taskId} and w.status = 'pending')`;

/**
 * Adds the deliveries of an event to the statement that writes the event, so that both are stored or neither. A task
 * without configurations costs one index probe.
 * Deliveries behind a failing one get its due time, so that sweeps skip them until then. An inexact time is harmless,
 * because only the first delivery of a configuration is ever claimed.
 */
@Injectable()
export class DeliverySink implements EventSink {
  readonly name = 'webhooks';

  needsLog(taskId: string): string {
    return hasPending(taskId);
  }

  sql(events: string): string {
    return `
      insert into webhook_deliveries (id, org_id, task_id, config_id, seq, next_at)
      select gen_random_uuid(), appended.org_id, appended.task_id, c.id, appended.seq, coalesce((
        select d.next_at
        from webhook_deliveries d
        where d.task_id = appended.task_id and d.config_id = c.id and d.status = 'pending'
        order by d.seq
        limit 1
      ), now())
      from ${events} appended
      cross join lateral (
        select id
        from push_configs
        where task_id = appended.task_id and state <> 'disabled'
        offset 0
      ) c`;
  }
}
