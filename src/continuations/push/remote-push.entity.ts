import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * A remote agent said that there is something to look at, and nobody has looked since. The task may not be stored yet: an agent may
 * push before its answer has arrived. Nothing of what was said is kept.
 */
@Entity('remote_pushes')
@Index('ix_remote_pushes_org', ['orgId'])
@Index('ix_remote_pushes_at', ['at'])
export class RemotePushEntity {
  /** The task of ours that the remote works for. */
  @PrimaryColumn('uuid', { name: 'task_id', primaryKeyConstraintName: 'pk_remote_pushes' })
  taskId: string;

  @Column('uuid', { name: 'org_id' })
  orgId: string;

  @Column('timestamptz', { default: () => 'now()' })
  at: Date;
}
