import { Module, type OnModuleInit } from '@nestjs/common';
import { VerbBus } from '../kernel/verb-bus.js';
import { FrontDoor } from '../platform/http/server/front-door.js';
import { PolicyModule } from '../policy/policy.module.js';
import { ApprovalsController } from './admin/approvals.controller.js';
import { ApprovalGate } from './approval-gate.js';
import { ApprovalService } from './approval.service.js';
import { ApprovalPageDoor } from './page/approval-page.door.js';
import { ApprovalPages } from './page/approval-pages.js';
import { ApprovalRetentionSweeper } from './storage/approval-retention.sweeper.js';
import { ApprovalStore } from './storage/approval.store.js';

/** Module 6: people approve the acts that policies ask about. */
@Module({
  imports: [PolicyModule],
  controllers: [ApprovalsController],
  providers: [ApprovalStore, ApprovalGate, ApprovalService, ApprovalPages, ApprovalPageDoor, ApprovalRetentionSweeper],
})
export class ApprovalsModule implements OnModuleInit {
  constructor(
    private readonly verbs: VerbBus,
    private readonly gate: ApprovalGate,
    private readonly front: FrontDoor,
    private readonly page: ApprovalPageDoor,
  ) {}

  onModuleInit(): void {
    this.verbs.approveWith((act, decision, needs) => this.gate.decide(act, decision, needs));
    for (const route of this.page.routes()) this.front.add(route);
  }
}
