import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import type { OrgId } from '../../kernel/ids.js';

/** Number of calls of a tool by a caller in the current minute. */
@Entity('tool_calls')
export class ToolCallsEntity {
  @PrimaryColumn('uuid', { name: 'org_id', primaryKeyConstraintName: 'pk_tool_calls' })
  @ForeignKey('OrgEntity', { name: 'fk_tool_calls_org' })
  orgId: OrgId;

  /** Kind and id of the principal. */
  @PrimaryColumn('text', { primaryKeyConstraintName: 'pk_tool_calls' })
  caller: string;

  @PrimaryColumn('text', { primaryKeyConstraintName: 'pk_tool_calls' })
  tool: string;

  @Index('ix_tool_calls_minute')
  @Column('timestamptz')
  minute: Date;

  @Column('integer')
  calls: number;
}
