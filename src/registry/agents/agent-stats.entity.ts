import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** Successes and failures of an agent: the posterior that routing samples from (RE-72). */
@Entity('agent_outcomes')
export class AgentOutcomesEntity {
  @PrimaryColumn('uuid', { name: 'agent_id', primaryKeyConstraintName: 'pk_agent_outcomes' })
  agentId: string;

  @Column('bigint', { default: 0 })
  successes: string;

  @Column('bigint', { default: 0 })
  failures: string;

  @Column('double precision', { name: 'total_ms', default: 0 })
  totalMs: number;

  @Column('timestamptz', { name: 'updated_at', default: () => 'now()' })
  updatedAt: Date;
}

/**
 * One call to a registered agent, during the call and after it. All processes read the load from these rows (RE-40,
 * RE-64, RE-69).
 */
@Entity('a2a_task_instances')
@Check('ck_a2a_task_instances_status', `status in ('active', 'completed', 'failed')`)
@Index('ix_a2a_task_instances_org', ['orgId', 'startedAt', 'id'])
@Index('ix_a2a_task_instances_caller', ['orgId', 'caller', 'startedAt', 'id'])
@Index('ix_a2a_task_instances_agent', ['orgId', 'agentId', 'startedAt', 'id'])
@Index('ix_a2a_task_instances_active', ['orgId', 'agentId', 'expiresAt'], { where: `status = 'active'` })
@Index('ix_a2a_task_instances_failed', ['orgId', 'startedAt', 'id'], { where: `status = 'failed'` })
@Index('ix_a2a_task_instances_routed', ['orgId', 'startedAt', 'id'], { where: `work_type not like 'explicit:%'` })
export class TaskInstanceEntity {
  /** The id of the act. */
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_a2a_task_instances' })
  id: string;

  @Column('uuid', { name: 'org_id' })
  orgId: string;

  @Column('uuid', { name: 'agent_id' })
  agentId: string;

  @Column('text', { name: 'agent_name' })
  agentName: string;

  @Column('text')
  verb: string;

  @Column('text', { name: 'skill_id', nullable: true })
  skillId: string | null;

  @Column('text', { name: 'session_id' })
  sessionId: string;

  @Column('text', { name: 'work_type' })
  workType: string;

  @Column('text')
  status: 'active' | 'completed' | 'failed';

  /** True while the call holds its place and was not sent yet. */
  @Column('boolean', { default: false })
  pending: boolean;

  /** Input and output of a dispatch: JSON text, cut when long, without secrets. Null for a tool call. */
  @Column('text', { nullable: true })
  input: string | null;

  @Column('text', { nullable: true })
  output: string | null;

  /** Id of the task at the remote agent. */
  @Column('text', { name: 'task_id', nullable: true })
  taskId: string | null;

  /** Cost that the card states; set when the call completed. */
  @Column('double precision', { nullable: true })
  cost: number | null;

  @Column('text')
  caller: string;

  @Column('text', { name: 'error_code', nullable: true })
  errorCode: string | null;

  @Column('double precision', { name: 'duration_ms', nullable: true })
  durationMs: number | null;

  @Column('timestamptz', { name: 'started_at', default: () => 'now()' })
  startedAt: Date;

  @Column('timestamptz', { name: 'ended_at', nullable: true })
  endedAt: Date | null;

  /** Time when an active call counts as lost, because its process was killed. */
  @Column('timestamptz', { name: 'expires_at' })
  expiresAt: Date;
}

/** Cost of a completed call (RE-42). */
@Entity('cost_events')
@Index('ix_cost_events_org', ['orgId', 'at'])
export class CostEventEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_cost_events' })
  id: string;

  @Column('uuid', { name: 'org_id' })
  orgId: string;

  @Column('uuid', { name: 'agent_id' })
  agentId: string;

  @Column('uuid', { name: 'act_id' })
  actId: string;

  @Column('double precision')
  amount: number;

  @Column('timestamptz', { default: () => 'now()' })
  at: Date;
}
