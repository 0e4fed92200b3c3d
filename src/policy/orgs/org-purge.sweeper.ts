import { Injectable } from '@nestjs/common';
import { AuditService } from '../../audit/audit.service.js';
import { systemClock } from '../../kernel/clock.js';
import type { OrgId } from '../../kernel/ids.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { OrgData } from '../org-data.js';
import { OrgDataStore } from './org-data.store.js';

/** Time for one sweep. The purge of a large org takes many sweeps, so that it does not block other sweepers. */
const perSweepMs = 20_000;

/**
 * Deletes the rows of deleted orgs in batches. A later sweep, also in another process, continues where this one
 * stopped.
 */
@Injectable()
@Sweeps('org.purge')
export class OrgPurgeSweeper implements Sweeper {
  readonly everyMs = 30_000;

  constructor(
    private readonly store: OrgDataStore,
    private readonly data: OrgData,
    private readonly audit: AuditService,
  ) {}

  async sweep(): Promise<void> {
    const until = systemClock.elapsed() + perSweepMs;
    for (const id of await this.store.deletedOrgs()) {
      let isEmpty = false;
      while (!isEmpty && systemClock.elapsed() < until) isEmpty = await this.data.dropSome(id);
      if (isEmpty && (await this.store.markPurged(id))) await this.audit.note(id as OrgId, 'org.purged', {});
    }
  }
}
