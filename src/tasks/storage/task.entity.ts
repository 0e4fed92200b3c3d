import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { Lineage, Principal } from '../../kernel/call-context.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import type { TrustTier } from '../../kernel/trust.js';
import type { Artifact, Message } from '../../protocol/a2a/model.js';
import type { EventsRow } from './stored-event.js';

const states = [
  'submitted',
  'working',
  'completed',
  'failed',
  'canceled',
  'rejected',
  'input-required',
  'auth-required',
]
  .map((state) => `'${state}'`)
  .join(', ');

/** A task of a published agent. The row is authoritative for its owner, its state, its lease, and when it is due. */
@Entity('a2a_tasks')
@Check('ck_a2a_tasks_state', `status_state in (${states})`)
@Index('ix_a2a_tasks_agent', ['orgId', 'agentId', 'statusTimestamp', 'id'])
@Index('ix_a2a_tasks_owner', ['orgId', 'agentId', 'owner', 'statusTimestamp', 'id'])
@Index('ix_a2a_tasks_state', ['orgId', 'agentId', 'statusState', 'statusTimestamp', 'id'], {
  where: `status_state <> 'completed'`,
})
@Index('ix_a2a_tasks_context', ['contextId', 'createdAt', 'id'])
@Index('ix_a2a_tasks_open', ['orgId', 'nextAt'], { where: 'next_at is not null' })
export class TaskEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_a2a_tasks' })
  id: string;

  @Column('uuid', { name: 'org_id' })
  orgId: string;

  @Column('uuid', { name: 'agent_id' })
  agentId: string;

  @Column('text', { name: 'agent_name' })
  agentName: string;

  @Column('text', { name: 'context_id' })
  contextId: string;

  /** `kind:id` of the principal that sent it; no other caller sees it, except admins. */
  @Column('text')
  owner: string;

  /** The full principal. Work continues in its name after the request is over. */
  @Column('json')
  principal: Principal;

  @Column('integer', { default: 0 })
  depth: number;

  /** Earlier callers in the delegation chain, for work that continues; null for a task that has ended. */
  @Column('json', { nullable: true })
  lineage: Lineage | null;

  /** The state, spelled as in v0.3. */
  @Column('text', { name: 'status_state' })
  statusState: string;

  /** Null for a task that has ended, when its log has the message after `folded_seq` and the message no metadata. */
  @Column('json', { name: 'status_message', nullable: true })
  statusMessage: Message | null;

  /** Status time that callers see, by the clock of the process that set it. */
  @Column('timestamptz', { name: 'status_timestamp' })
  statusTimestamp: Date;

  /**
   * Time of the last change of status, by the clock of the database; sweeps measure the age of a status with it. Null
   * when the status never changed.
   */
  @Column('timestamptz', { name: 'status_since', nullable: true })
  statusSince: Date | null;

  /** Messages up to event `folded_seq`; later ones are in the log (task.store.ts folds them). */
  @Column('json')
  history: Message[];

  /** Artifacts up to event `folded_seq`; later ones are in the log. */
  @Column('json')
  artifacts: Artifact[];

  @Column('json', { nullable: true })
  metadata: JsonObject | null;

  /** The lowest trust tier of its messages: 0 for cleartext (RI-07). */
  @Column('smallint', { name: 'trust_tier', default: 0 })
  trustTier: TrustTier;

  /** Sequence number of the last event. */
  @Column('integer')
  seq: number;

  @Column('integer', { name: 'folded_seq' })
  foldedSeq: number;

  /** State that its executor needs in later runs, in any process, e.g. the id of a remote task. */
  @Column('json', { nullable: true })
  memo: Json | null;

  /** When a worker has to run it, by the clock of the database; null when none has to. */
  @Column('timestamptz', { name: 'next_at', nullable: true })
  nextAt: Date | null;

  /** The process that works on it (platform/database/presence.ts); null for an external holder. */
  @Column('integer', { name: 'lease_owner', nullable: true })
  leaseOwner: number | null;

  @Column('timestamptz', { name: 'lease_until', nullable: true })
  leaseUntil: Date | null;

  /** Incremented with each new holder: a write with an older epoch changes nothing. */
  @Column('integer', { name: 'lease_epoch', default: 0 })
  leaseEpoch: number;

  /** How often its holder was lost. */
  @Column('integer', { default: 0 })
  crashes: number;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;

  @Column('timestamptz', { name: 'updated_at', default: () => 'now()' })
  updatedAt: Date;
}

/** The events of one commit of a task, in their order. Insert-only. */
@Entity('a2a_task_events')
@Index('uq_a2a_task_events_end', ['taskId'], { unique: true, where: 'terminal' })
export class TaskEventEntity {
  @PrimaryColumn('uuid', { name: 'task_id', primaryKeyConstraintName: 'pk_a2a_task_events' })
  taskId: string;

  /** Number of the last event. */
  @PrimaryColumn('integer', { primaryKeyConstraintName: 'pk_a2a_task_events' })
  seq: number;

  /** A single event, or the list of events from `first_seq` to `seq`, as stored-event.ts describes. */
  @Column('json')
  body: EventsRow['body'];

  /** True when the last event ends the task. */
  @Column('boolean', { default: false })
  terminal: boolean;

  @Column('timestamptz')
  at: Date;

  /** Number of the first event of a list; null when the body is a single event. */
  @Column('integer', { name: 'first_seq', nullable: true })
  firstSeq: number | null;
}

/** A report of external work that its task has applied (decisions: exactly once). Insert-only. */
@Entity('a2a_task_reports')
export class TaskReportEntity {
  @PrimaryColumn('uuid', { name: 'task_id', primaryKeyConstraintName: 'pk_a2a_task_reports' })
  taskId: string;

  /** The id that the worker has given to the report. */
  @PrimaryColumn('text', { name: 'report_id', primaryKeyConstraintName: 'pk_a2a_task_reports' })
  reportId: string;
}

/** The use of an idempotency key (decisions: idempotency). */
@Entity('a2a_idempotency_keys')
@Index('ix_a2a_idempotency_keys_task', ['taskId'])
export class IdempotencyKeyEntity {
  @PrimaryColumn('uuid', { name: 'org_id', primaryKeyConstraintName: 'pk_a2a_idempotency_keys' })
  orgId: string;

  @PrimaryColumn('uuid', { name: 'agent_id', primaryKeyConstraintName: 'pk_a2a_idempotency_keys' })
  agentId: string;

  @PrimaryColumn('text', { primaryKeyConstraintName: 'pk_a2a_idempotency_keys' })
  owner: string;

  @PrimaryColumn('text', { primaryKeyConstraintName: 'pk_a2a_idempotency_keys' })
  key: string;

  @Column('text', { name: 'payload_hash' })
  payloadHash: string;

  /**
   * The task that the message created or continued; for a message that was answered without a task, an id that no task
   * has.
   */
  @Column('uuid', { name: 'task_id' })
  taskId: string;

  /** The message that was the whole answer. */
  @Column('json', { nullable: true })
  answer: Message | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;
}
