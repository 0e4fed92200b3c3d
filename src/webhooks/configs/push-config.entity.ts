import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { PushFormat } from '../../protocol/a2a/request/operations.js';

/** `failing`: the last attempt failed. `disabled`: nothing is posted until the configuration is activated. */
export type PushState = 'active' | 'failing' | 'disabled';

/** A push configuration: where updates of a task are posted. */
@Entity('push_configs')
@Check('ck_push_configs_format', `format in ('v1', 'v0.3', 'task', 'reyn')`)
@Check('ck_push_configs_state', `state in ('active', 'failing', 'disabled')`)
@Index('ix_push_configs_created', ['createdAt'])
@Index('ix_push_configs_org', ['orgId', 'createdAt', 'taskId', 'id'])
export class PushConfigEntity {
  @PrimaryColumn('uuid', { name: 'task_id', primaryKeyConstraintName: 'pk_push_configs' })
  taskId: string;

  @PrimaryColumn('text', { primaryKeyConstraintName: 'pk_push_configs' })
  id: string;

  @Column('uuid', { name: 'org_id' })
  orgId: string;

  @Column('text')
  url: string;

  /** Sealed. */
  @Column('text', { nullable: true })
  token: string | null;

  /** The scheme and the credentials, sealed together. */
  @Column('text', { nullable: true })
  authentication: string | null;

  /** The format of the bodies. */
  @Column('text')
  format: PushFormat;

  @Column('text', { default: 'active' })
  state: PushState;

  /** Why it is disabled. */
  @Column('text', { nullable: true })
  reason: string | null;

  /** Time of the first failure since the last success. */
  @Column('timestamptz', { name: 'failing_since', nullable: true })
  failingSince: Date | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;
}
