import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * `dead`: given up, the receiver never accepted it. `skipped`: will never be posted, because the format leaves the
 * event out or the configuration is deleted or disabled.
 */
export type DeliveryStatus = 'pending' | 'delivered' | 'dead' | 'skipped';

/**
 * The delivery of one event of a task to one configuration. The pending deliveries of a configuration are posted by
 * `seq`, one at a time.
 */
@Entity('webhook_deliveries')
@Check('ck_webhook_deliveries_status', `status in ('pending', 'delivered', 'dead', 'skipped')`)
@Index('uq_webhook_deliveries_event', ['taskId', 'configId', 'seq'], { unique: true })
@Index('ix_webhook_deliveries_pending', ['taskId', 'configId', 'seq'], { where: "status = 'pending'" })
@Index('ix_webhook_deliveries_due', ['nextAt'], { where: "status = 'pending'" })
@Index('ix_webhook_deliveries_created', ['createdAt'])
@Index('ix_webhook_deliveries_org', ['orgId', 'createdAt', 'seq', 'id'])
@Index('ix_webhook_deliveries_open', ['orgId', 'createdAt', 'seq', 'id'], { where: "status <> 'delivered'" })
export class WebhookDeliveryEntity {
  /** Also the `webhook-id` of each attempt. */
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_webhook_deliveries' })
  id: string;

  @Column('uuid', { name: 'org_id' })
  orgId: string;

  @Column('uuid', { name: 'task_id' })
  taskId: string;

  @Column('text', { name: 'config_id' })
  configId: string;

  /** The number of the event in the log of its task. */
  @Column('integer')
  seq: number;

  @Column('text', { default: 'pending' })
  status: DeliveryStatus;

  /** Attempts that were begun. A write about an older attempt changes nothing. */
  @Column('integer', { default: 0 })
  attempts: number;

  /** Attempts before the last restart of the delivery; the retry schedule starts after them. */
  @Column('integer', { name: 'earlier_attempts', default: 0 })
  earlierAttempts: number;

  /** When the next attempt is due, by the clock of the database. */
  @Column('timestamptz', { name: 'next_at', default: () => 'now()' })
  nextAt: Date;

  @Column('integer', { name: 'lease_owner', nullable: true })
  leaseOwner: number | null;

  @Column('timestamptz', { name: 'lease_until', nullable: true })
  leaseUntil: Date | null;

  /** The posted body, byte for byte; null before the first attempt. */
  @Column('text', { nullable: true })
  body: string | null;

  @Column('integer', { name: 'last_status', nullable: true })
  lastStatus: number | null;

  @Column('text', { name: 'last_error', nullable: true })
  lastError: string | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;

  @Column('timestamptz', { name: 'ended_at', nullable: true })
  endedAt: Date | null;
}

/** One attempt of a delivery, for the org that owns it. */
@Entity('webhook_attempts')
export class WebhookAttemptEntity {
  @PrimaryColumn('uuid', { name: 'delivery_id', primaryKeyConstraintName: 'pk_webhook_attempts' })
  deliveryId: string;

  @PrimaryColumn('integer', { primaryKeyConstraintName: 'pk_webhook_attempts' })
  number: number;

  /** When it ended. */
  @Column('timestamptz', { default: () => 'now()' })
  at: Date;

  @Column('integer', { name: 'duration_ms' })
  durationMs: number;

  @Column('integer', { nullable: true })
  status: number | null;

  /** A code, never an address or the state of a port (abuse case 23). */
  @Column('text', { nullable: true })
  error: string | null;

  /** The beginning of the reply, without the secrets that were sent. */
  @Column('text', { nullable: true })
  reply: string | null;
}
