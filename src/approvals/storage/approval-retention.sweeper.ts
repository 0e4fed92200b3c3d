import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { ApprovalStore } from './approval.store.js';

/** Deletes approvals past their retention. The audit keeps who approved which act. */
@Injectable()
@Sweeps('approval.retention')
export class ApprovalRetentionSweeper implements Sweeper {
  readonly everyMs = 600_000;

  constructor(
    private readonly store: ApprovalStore,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  sweep(): Promise<void> {
    return this.store.dropOld(this.settings.RIALTO_TASK_RETENTION_DAYS);
  }
}
