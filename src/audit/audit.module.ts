import { Module, type OnModuleInit } from '@nestjs/common';
import { Ledger } from '../platform/bus/ledger.js';
import { AuditAnchor } from './audit-anchor.js';
import { AuditAnchorStore } from './audit-anchor.store.js';
import { AuditCheckpointStore } from './audit-checkpoint.store.js';
import { AuditVerificationService } from './audit-verification.service.js';
import { AuditController } from './audit.controller.js';
import { AuditEventStore } from './audit-event.store.js';
import { auditRecorder } from './audit.recorder.js';
import { AuditRetention } from './audit.retention.js';
import { AuditCheckpoints } from './audit-checkpoints.js';
import { AuditSealer } from './audit.sealer.js';
import { AuditService } from './audit.service.js';

/** Module 4: an append-only, chained record of every act. */
@Module({
  controllers: [AuditController],
  providers: [
    AuditService,
    AuditVerificationService,
    AuditEventStore,
    AuditCheckpointStore,
    AuditAnchorStore,
    AuditCheckpoints,
    AuditAnchor,
    AuditSealer,
    AuditRetention,
  ],
  exports: [AuditService],
})
export class AuditModule implements OnModuleInit {
  constructor(private readonly ledger: Ledger) {}

  onModuleInit(): void {
    this.ledger.add(auditRecorder);
  }
}
