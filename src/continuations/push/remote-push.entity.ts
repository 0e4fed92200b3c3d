import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * A push of a remote agent that no poll has followed yet. The task may not be stored yet, because an agent may push
 * before its answer arrives. The content of the push is not stored.
 */
@Entity('remote_pushes')
@Index('ix_remote_pushes_org', ['orgId'])
@Index('ix_remote_pushes_at', ['at'])
export class RemotePushEntity {
  /** The task here that the remote works for. */
  @PrimaryColumn('uuid', { name: 'task_id', primaryKeyConstraintName: 'pk_remote_pushes' })
  taskId: string;

  @Column('uuid', { name: 'org_id' })
  orgId: string;

  @Column('timestamptz', { default: () => 'now()' })
  at: Date;
}
