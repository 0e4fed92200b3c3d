import { Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import type { AgentId } from '../../kernel/ids.js';
import type { JobPayload } from '../../kernel/jobs.js';
import { TxRunner } from '../../platform/database/tx.js';
import { HandlesJob, type JobHandler } from '../../platform/jobs/handles-job.decorator.js';
import { AttemptFailed, type JobRun } from '../../platform/jobs/job-run.js';
import { AgentStore } from '../agents/agent.store.js';
import { CardRefresher } from './card-refresher.js';

/** Refreshes one agent if it is due. A duplicate job finds the agent leased or not due. */
@Injectable()
@HandlesJob('card.refresh')
export class CardRefreshProcessor implements JobHandler<'card.refresh'> {
  constructor(
    private readonly store: AgentStore,
    private readonly refresher: CardRefresher,
    private readonly txs: TxRunner,
  ) {}

  async handle({ agentId }: JobPayload<'card.refresh'>, job: JobRun): Promise<void> {
    const row = await this.store.claimDue(agentId as AgentId, job.byHand);
    if (!row) return job.log(`agent ${agentId}: its card is not due, or another process refreshes it`);
    const attempt = await this.refresher.checkCard(row);
    await this.txs
      .run((tx) => this.refresher.storeAttempt(tx, attempt, false))
      .catch((error: unknown) => {
        if (RialtoError.from(error).code !== 'not_found') throw error;
      });
    job.log(`agent ${row.slug}: ${attempt.result}`);
    if (attempt.result !== 'ok') throw new AttemptFailed(`the card of ${row.slug} is ${attempt.result}`);
  }
}
