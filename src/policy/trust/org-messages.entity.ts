import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm';
import type { OrgId } from '../../kernel/ids.js';

/** Number of messages that an org has sent on its last day, while quotas are on. */
@Entity('org_messages')
export class OrgMessagesEntity {
  @PrimaryColumn('uuid', { name: 'org_id', primaryKeyConstraintName: 'pk_org_messages' })
  @ForeignKey('OrgEntity', { name: 'fk_org_messages_org' })
  orgId: OrgId;

  /** The day in UTC. */
  @Column('date')
  day: string;

  @Column('integer')
  messages: number;
}
