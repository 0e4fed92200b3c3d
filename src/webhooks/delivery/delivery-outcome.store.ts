import { Injectable } from '@nestjs/common';
import { textByKey } from '../../platform/database/by-key.js';
import { Pg } from '../../platform/database/pg.js';
import { preparedName, rowExpressions, type RowChange } from '../../platform/database/row-writer.js';
import { later, positional, type SqlParams } from '../../platform/database/sql.js';
import { mayEnd, released, stampOf, tryParams, type Claimed, type Tried } from './delivery.store.js';
import type { Verdict } from './retry-plan.js';

/** Stores attempts that change their configuration or the deliveries behind them, by the clock of the database. */
@Injectable()
export class DeliveryOutcomeStore {
  constructor(private readonly pg: Pg) {}

  /**
   * Stores the first success after failures. Deliveries behind it become due, also when only this one was made due
   * early.
   */
  async recovered(claimed: Claimed, tried: Tried, auditRows: readonly RowChange[]): Promise<void> {
    await this.storeAttempt(
      'delivery-recovered',
      `
      done as (
        update webhook_deliveries
        set status = 'delivered', ${released}, last_status = :status, last_error = null, ended_at = now()
        where id = :id and attempts = :attempt and ${mayEnd('')}
        returning task_id, config_id, seq
      ),
      others as (
        update webhook_deliveries d
        set next_at = now()
        from done
        where d.task_id = done.task_id and d.config_id = done.config_id and d.status = 'pending' and d.seq > done.seq
          and d.next_at > now()
      ),
      config as (
        update push_configs c
        set state = 'active', reason = null, failing_since = null
        from done
        where c.task_id = done.task_id and c.id = done.config_id and c.state = 'failing'
          and ${stampOf} is not distinct from :stamp
      )`,
      { ...tryParams(claimed, tried), stamp: claimed.stamp },
      auditRows,
    );
  }

  /**
   * Stores a failure. Deliveries behind a failing one wait as long as it, behind a dead one they are due, and those of
   * a closed configuration become dead. Returns false when the configuration was replaced meanwhile: the failure does
   * not count for the new one, which is posted to at once.
   */
  failed(
    claimed: Claimed,
    tried: Tried,
    verdict: Exclude<Verdict, { kind: 'delivered' }>,
    auditRows: readonly RowChange[],
  ): Promise<boolean> {
    return this.storeAttempt(
      'delivery-failed',
      // Locked first, in the same order as a replacement locks it.
      `
      replaced as materialized (
        select ${stampOf} is distinct from :stamp as is
        from push_configs c
        where c.task_id = :taskId and c.id = :configId
        for update
      ),
      again as (
        update webhook_deliveries d
        set ${released}, last_status = :status, last_error = :error, body = null, next_at = now()
        from replaced
        where replaced.is and d.id = :id and d.attempts = :attempt and ${textByKey('d.status')} = 'pending'
        returning d.id
      ),
      done as (
        update webhook_deliveries
        set status = :nextStatus, ${released}, last_status = :status, last_error = :error,
          next_at = ${later(':delayMs::integer')}, ended_at = case when :nextStatus = 'dead' then now() end
        where id = :id and attempts = :attempt and ${textByKey('status')} = 'pending'
          and not exists (select from replaced where replaced.is)
        returning task_id, config_id, seq
      ),
      others as (
        update webhook_deliveries d
        set status = case when :closed::text is null then 'pending' else 'dead' end,
          next_at = ${later(':delayMs::integer')}, last_error = coalesce(:closed, d.last_error),
          ended_at = case when :closed is not null then now() end
        from done
        where d.task_id = done.task_id and d.config_id = done.config_id and d.status = 'pending' and d.seq > done.seq
      ),
      config as (
        update push_configs c
        set state = case when :closed is null then 'failing' else 'disabled' end, reason = :closed,
          failing_since = coalesce(case when c.state = 'failing' then c.failing_since end, now())
        from done
        where c.task_id = done.task_id and c.id = done.config_id and c.state <> 'disabled'
      )`,
      {
        ...tryParams(claimed, tried),
        nextStatus: verdict.kind === 'retry' ? 'pending' : 'dead',
        delayMs: verdict.kind === 'retry' ? verdict.inMs : 0,
        closed: verdict.kind === 'closed' ? verdict.reason : null,
        stamp: claimed.stamp,
        taskId: claimed.taskId,
        configId: claimed.configId,
      },
      auditRows,
      'not exists (select from again)',
    );
  }

  /**
   * Runs one statement: the attempt, `sql`, and the audit rows unless the claim was lost. Returns the value of
   * `answer`.
   */
  private async storeAttempt(
    name: string,
    sql: string,
    params: SqlParams,
    auditRows: readonly RowChange[],
    answer = 'true',
  ): Promise<boolean> {
    const { text, values } = positional(`tried as (${recordTry}), ${sql}`, params);
    const select = (rows: string): string => `(case when exists (select from done) then ${rows} else '[]' end)`;
    const more = rowExpressions(auditRows, values.length + 1, { label: 'told', select });
    const [row] = await this.pg.rows<{ answer: boolean }>(
      preparedName([name, ...more.names].join('+')),
      `with ${[text, ...more.expressions].join(', ')} select ${answer} as answer`,
      [...values, ...more.values],
    );
    return row?.answer ?? true;
  }

  /** Skips events without a body, from the claimed one up to its own number. */
  skip(claimed: Claimed): Promise<void> {
    return this.dropDelivery(claimed, claimed.seq, 'skipped', null);
  }

  /** Ends all pending deliveries of a configuration that is deleted or disabled, starting with the claimed one. */
  close(claimed: Claimed, status: 'dead' | 'skipped', reason: string): Promise<void> {
    return this.dropDelivery(claimed, 2_147_483_647, status, reason);
  }

  private async dropDelivery(
    { delivery, attempts }: Claimed,
    until: number,
    status: string,
    reason: string | null,
  ): Promise<void> {
    await this.pg.rows(
      'delivery-drop',
      `
      with done as (
        update webhook_deliveries
        set status = :status, last_error = coalesce(:reason, last_error), ${released}, ended_at = now()
        where id = :id and attempts = :attempts and ${textByKey('status')} = 'pending'
        returning task_id, config_id, seq
      )
      update webhook_deliveries d
      set status = :status, last_error = coalesce(:reason, d.last_error), ended_at = now()
      from done
      where d.task_id = done.task_id and d.config_id = done.config_id and d.status = 'pending' and d.seq > done.seq
        and d.seq <= :until`,
      { id: delivery, attempts, until, status, reason },
    );
  }
}

const recordTry = `
  insert into webhook_attempts (delivery_id, number, duration_ms, status, error, reply)
  values (:id, :attempt, :durationMs, :status, :error, :reply)
  on conflict do nothing`;
