import { Inject, Injectable } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import type { OrgId } from '../kernel/ids.js';
import { Pg } from '../platform/database/pg.js';
import { Sweeps, type Sweeper } from '../platform/jobs/handles-job.decorator.js';
import { SigningKeys } from '../platform/secrets/signing-keys.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { checkpointBytes, type ChainState } from './chain.js';

/** Signs how far the chain of each org reaches, within a minute also where nothing follows (reliability-security 4.12). */
@Injectable()
@Sweeps('audit.checkpoints')
export class AuditCheckpoints implements Sweeper {
  readonly everyMs = 30_000;

  constructor(
    private readonly pg: Pg,
    private readonly keys: SigningKeys,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Orgs whose chain goes on behind their last checkpoint: two steps along keys for each org. */
  async sweep(): Promise<void> {
    const heads = await this.pg.rows<{ org: OrgId; sequence: string; hash: string }>(
      'audit-unsigned-heads',
      `select o.id as org, head.sequence, head.hash from orgs o
       cross join lateral (select c.sequence, c.hash from audit_chain c where c.org_id = o.id order by c.sequence desc limit 1) head
       where head.sequence > coalesce((select p.sequence from audit_checkpoints p where p.org_id = o.id order by p.sequence desc limit 1), 0)`,
    );
    for (const { org, sequence, hash } of heads) await this.sign(org, { sequence: Number(sequence), hash });
  }

  async sign(org: OrgId, state: ChainState): Promise<void> {
    const at = new Date(systemClock.now()).toISOString();
    const { kid, signature } = await this.keys.sign(checkpointBytes(org, state, at));
    await this.pg.rows(
      'audit-checkpoint',
      `insert into audit_checkpoints (org_id, sequence, hash, at, kid, signature) values ($1, $2, $3, $4, $5, $6) on conflict do nothing`,
      [org, state.sequence, state.hash, at, kid, signature],
    );
    this.log.info({ orgId: org, ...state, at, kid, signature }, 'audit checkpoint');
  }
}
