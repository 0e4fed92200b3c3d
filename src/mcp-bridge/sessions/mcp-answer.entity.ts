import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import type { Json } from '../../kernel/json.js';

/**
 * An answer of a client of the 2025 era that arrived in another process than the one that asked; that process fetches
 * it.
 */
@Entity('mcp_answers')
export class McpAnswerEntity {
  /** Id of the question. */
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_mcp_answers' })
  id: string;

  @ForeignKey('McpSessionEntity', { name: 'fk_mcp_answers_session', onDelete: 'CASCADE' })
  @Index('ix_mcp_answers_session')
  @Column('uuid', { name: 'session_id' })
  sessionId: string;

  /** The message as it was received. */
  @Column('json')
  answer: Json;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;
}
