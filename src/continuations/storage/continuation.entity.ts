import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { Principal } from '../../kernel/call-context.js';

/**
 * States of a continuation. `pending`: deferred until `next_at`. `processing`: a process follows the remote task.
 * `delivering`: the end is known and is being delivered. `completed`: the end was delivered, whether good or bad.
 * `failed`: the remote task reached no end that counts.
 */
export const continuationStatuses = ['pending', 'processing', 'delivering', 'completed', 'failed'] as const;
export type ContinuationStatus = (typeof continuationStatuses)[number];

/**
 * A task at a remote agent that did not end at once (AN-64, AN-74). The lease of the task here says which process
 * works on it. This row says how long and how often it was followed, and how it ended. It never holds a credential or
 * a payload.
 */
@Entity('a2a_continuations')
@Check('ck_a2a_continuations_status', `status in ('pending', 'processing', 'delivering', 'completed', 'failed')`)
@Index('uq_a2a_continuations_remote', ['taskId', 'agentUrl', 'remoteTaskId'], { unique: true })
@Index('ix_a2a_continuations_org', ['orgId', 'createdAt', 'id'])
@Index('ix_a2a_continuations_open', ['orgId', 'createdAt', 'id'], { where: 'ended_at is null' })
@Index('ix_a2a_continuations_ended', ['endedAt'], { where: 'ended_at is not null' })
export class ContinuationEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_a2a_continuations' })
  id: string;

  @Column('uuid', { name: 'org_id' })
  orgId: string;

  /** The task here that gets the end of the remote task. */
  @Column('uuid', { name: 'task_id' })
  taskId: string;

  @Column('uuid', { name: 'agent_id' })
  agentId: string;

  @Column('text', { name: 'agent_slug' })
  agentSlug: string;

  @Column('text', { name: 'agent_url' })
  agentUrl: string;

  @Column('text', { name: 'remote_task_id' })
  remoteTaskId: string;

  /** The caller that the work is done for; credentials are made anew for each call (AN-71). */
  @Column('json')
  principal: Principal;

  @Column('text', { name: 'request_id' })
  requestId: string;

  /** Act that was handed over to the continuation and is ended together with it. */
  @Column('uuid', { name: 'act_id', nullable: true })
  actId: string | null;

  @Column('text')
  status: ContinuationStatus;

  /** How often a worker resumed it; polls are not counted here. */
  @Column('integer', { default: 0 })
  attempts: number;

  /** Polls of the remote task. */
  @Column('integer', { default: 0 })
  polls: number;

  /** When the time that the remote task may take is over, by the clock of the database. */
  @Column('timestamptz', { name: 'deadline_at' })
  deadlineAt: Date;

  @Column('timestamptz', { name: 'next_at', nullable: true })
  nextAt: Date | null;

  @Column('text', { name: 'last_error', nullable: true })
  lastError: string | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;

  @Column('timestamptz', { name: 'updated_at', default: () => 'now()' })
  updatedAt: Date;

  @Column('timestamptz', { name: 'ended_at', nullable: true })
  endedAt: Date | null;
}
