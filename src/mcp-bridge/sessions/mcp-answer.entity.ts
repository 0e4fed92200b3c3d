import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import type { Json } from '../../kernel/json.js';

/** What a client of the 2025 era answered to a process that did not ask it: the one that did fetches it. */
@Entity('mcp_answers')
export class McpAnswerEntity {
  /** Of the question. */
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_mcp_answers' })
  id: string;

  @ForeignKey('McpSessionEntity', { name: 'fk_mcp_answers_session', onDelete: 'CASCADE' })
  @Index('ix_mcp_answers_session')
  @Column('uuid', { name: 'session_id' })
  sessionId: string;

  /** The message as it came. */
  @Column('json')
  answer: Json;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;
}
