import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { JsonObject } from '../../kernel/json.js';

/**
 * `held`: its caller still waits for the answer itself. `waiting`: for the end of the task. `delivering`: its payload is written down, and
 * may have been sent. `received`: there is a receipt. The last three are ends: `answered` when the caller got the answer itself.
 */
export const threadAnswerStatuses = [
  'held',
  'waiting',
  'delivering',
  'received',
  'delivered',
  'dead',
  'answered',
] as const;
export type ThreadAnswerStatus = (typeof threadAnswerStatuses)[number];

/** The answer of one task to a conversation thread; its id is the mark that every send of it carries. An ended one holds no secret and no payload (AN-75). */
@Entity('thread_answers')
@Check(
  'ck_thread_answers_status',
  `status in ('held', 'waiting', 'delivering', 'received', 'delivered', 'dead', 'answered')`,
)
@Check('ck_thread_answers_scrubbed', 'ended_at is null or (token is null and payload is null and not owns_progress)')
@Index('uq_thread_answers_task', ['taskId'], { unique: true })
@Index('uq_thread_answers_progress', ['orgId', 'threadKey'], { unique: true, where: 'owns_progress' })
@Index('ix_thread_answers_org', ['orgId'])
@Index('ix_thread_answers_open', ['nextAt'], { where: 'ended_at is null' })
@Index('ix_thread_answers_ended', ['endedAt'], { where: 'ended_at is not null' })
export class ThreadAnswerEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_thread_answers' })
  id: string;

  @Column('uuid', { name: 'org_id' })
  orgId: string;

  @Column('uuid', { name: 'task_id' })
  taskId: string;

  @Column('text')
  url: string;

  /** What its receiver calls the thread. */
  @Column('text', { name: 'thread_id' })
  threadId: string;

  /** What all answers to one thread have in common: a hash of address and name. */
  @Column('text', { name: 'thread_key' })
  threadKey: string;

  /** Sealed. */
  @Column('text', { nullable: true })
  token: string | null;

  @Column('text', { default: 'held' })
  status: ThreadAnswerStatus;

  /** What is sent, the same each time. */
  @Column('json', { nullable: true })
  payload: JsonObject | null;

  /** The last event of the task that the thread was told of. */
  @Column('integer', { default: 0 })
  seq: number;

  /** Of all that wait for one thread, one keeps its progress message (AN-77). */
  @Column('boolean', { name: 'owns_progress', default: false })
  ownsProgress: boolean;

  @Column('integer', { default: 0 })
  attempts: number;

  /** `{ status, messageId? }` of the answer that took it. */
  @Column('json', { nullable: true })
  receipt: JsonObject | null;

  @Column('text', { name: 'last_error', nullable: true })
  lastError: string | null;

  @Column('timestamptz', { name: 'next_at', default: () => 'now()' })
  nextAt: Date;

  @Column('integer', { name: 'lease_owner', nullable: true })
  leaseOwner: number | null;

  @Column('timestamptz', { name: 'lease_until', nullable: true })
  leaseUntil: Date | null;

  @Column('integer', { name: 'lease_epoch', default: 0 })
  leaseEpoch: number;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;

  @Column('timestamptz', { name: 'ended_at', nullable: true })
  endedAt: Date | null;
}
