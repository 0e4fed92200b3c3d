import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { JsonObject } from '../../kernel/json.js';

/**
 * States of a thread answer. `held`: the caller still waits for the answer itself. `waiting`: the task has not ended.
 * `delivering`: the payload is stored and may have been sent. `received`: a receipt is stored. The last three are
 * final; `answered` means that the caller got the answer itself.
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

/**
 * Answer of one task to a conversation thread; every send of it carries its id as idempotency key. An ended row holds
 * no secret and no payload (AN-75).
 */
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

  /** Name of the thread at the receiver. */
  @Column('text', { name: 'thread_id' })
  threadId: string;

  /** Key that all answers to one thread share: a hash of URL and thread id. */
  @Column('text', { name: 'thread_key' })
  threadKey: string;

  /** Encrypted token of the thread. */
  @Column('text', { nullable: true })
  token: string | null;

  @Column('text', { default: 'held' })
  status: ThreadAnswerStatus;

  /** Body that is sent, the same for each attempt. */
  @Column('json', { nullable: true })
  payload: JsonObject | null;

  /** Number of the last task event that the thread was notified of. */
  @Column('integer', { default: 0 })
  seq: number;

  /** True for the one waiting answer of a thread that updates its progress message (AN-77). */
  @Column('boolean', { name: 'owns_progress', default: false })
  ownsProgress: boolean;

  @Column('integer', { default: 0 })
  attempts: number;

  /** `{ status, messageId? }` of the response that accepted the answer. */
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
