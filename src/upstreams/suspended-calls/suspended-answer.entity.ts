import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import type { OrgId } from '../../kernel/ids.js';
import type { Json } from '../../kernel/json.js';

/** Answers to the questions of a call that another process holds, and the outcome of the call's next round. */
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

  /** Null until the process that holds the call has processed the answers. */
  @Column('json', { nullable: true })
  outcome: Json | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;
}
