import { Module, type OnModuleInit } from '@nestjs/common';
import { Ledger } from '../platform/bus/ledger.js';
import { AuditAnchor } from './anchors/audit-anchor.js';
import { AuditAnchorStore } from './anchors/audit-anchor.store.js';
import { AuditKeysService } from './audit-keys.service.js';
import { AuditCheckpointStore } from './audit-checkpoint.store.js';
import { AuditVerificationService } from './audit-verification.service.js';
import { AuditController } from './audit.controller.js';
import { AuditEventStore } from './audit-event.store.js';
import { AuditRecorder } from './audit.recorder.js';
import { AuditRetention } from './audit.retention.js';
import { AuditCheckpoints } from './audit-checkpoints.js';
import { AuditSealer } from './audit.sealer.js';
import { AuditService } from './audit.service.js';
import { AuditReadService } from './audit-read.service.js';
import { AuditPendingStore } from './audit-pending.store.js';
import { AuditExportService } from './export/audit-export.service.js';
import { AuditExportStore } from './export/audit-export.store.js';
import { AnchorLag } from './anchors/anchor-lag.js';
import { ErasureService } from './personal/erasure.service.js';
import { OpenedEvents } from './personal/opened-events.js';
import { PersonalReader } from './personal/personal-reader.js';
import { SubjectKeyStore } from './personal/subject-key.store.js';
import { SubjectKeys } from './personal/subject-keys.js';
import { AuditTimestampStore } from './timestamps/audit-timestamp.store.js';

/** Module 4: an append-only, chained record of every act. */
@Module({
  controllers: [AuditController],
  providers: [
    AuditService,
    AuditReadService,
    AuditPendingStore,
    AnchorLag,
    AuditVerificationService,
    { provide: AuditEventStore, useClass: OpenedEvents },
    AuditCheckpointStore,
    AuditAnchorStore,
    AuditTimestampStore,
    AuditCheckpoints,
    AuditAnchor,
    AuditSealer,
    AuditRetention,
    AuditKeysService,
    AuditExportStore,
    AuditExportService,
    SubjectKeyStore,
    SubjectKeys,
    PersonalReader,
    ErasureService,
  ],
  exports: [AuditService, AuditKeysService],
})
export class AuditModule implements OnModuleInit {
  constructor(
    private readonly ledger: Ledger,
    private readonly keys: SubjectKeys,
  ) {}

  onModuleInit(): void {
    this.ledger.add(new AuditRecorder(this.keys));
  }
}
