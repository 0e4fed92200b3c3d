import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A secret that signs the deliveries of an org until it ends. */
@Entity('webhook_secrets')
@Index('ix_webhook_secrets_org', ['orgId', 'id'])
export class WebhookSecretEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_webhook_secrets' })
  id: string;

  @Column('uuid', { name: 'org_id' })
  orgId: string;

  @Column('text')
  sealed: string;

  /** The last characters, to tell secrets apart. */
  @Column('text')
  hint: string;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;

  /** When it stops signing; null for the newest. */
  @Column('timestamptz', { name: 'ends_at', nullable: true })
  endsAt: Date | null;
}
