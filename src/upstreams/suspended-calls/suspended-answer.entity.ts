import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import type { OrgId } from '../../kernel/ids.js';
import type { Json } from '../../kernel/json.js';

/** Answers for a call that another process holds, and what the call came to then. */
@Entity('mcp_held_answers')
@Index('ix_mcp_held_answers_call', ['callId'])
export class SuspendedAnswerEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_mcp_held_answers' })
  id: string;

  @Column('uuid', { name: 'org_id' })
  @ForeignKey('OrgEntity', { name: 'fk_mcp_held_answers_org' })
  orgId: OrgId;

  @Column('uuid', { name: 'call_id' })
  callId: string;

  @Column('json')
  answers: Json;

  /** Null until the process that holds the call has it. */
  @Column('json', { nullable: true })
  outcome: Json | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;
}
