import { Injectable } from '@nestjs/common';
import { Pg } from '../../platform/database/pg.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';

/**
 * Deletes revocations of expired tokens and retired secrets. Both stay some time longer, because the clocks of
 * processes differ.
 */
@Injectable()
@Sweeps('token.revocations')
export class RevocationSweeper implements Sweeper {
  readonly everyMs = 600_000;

  constructor(private readonly pg: Pg) {}

  async sweep(): Promise<void> {
    await this.pg.rows(
      'revocations-expired',
      `delete from revoked_tokens where expires_at < now() - interval '1 hour'`,
    );
    await this.pg.rows('secrets-retired', `delete from org_secrets where retires_at < now() - interval '1 day'`);
  }
}
