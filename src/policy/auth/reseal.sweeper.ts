import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { Pg } from '../../platform/database/pg.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { resealAll } from '../../platform/secrets/sealed-columns.js';
import { Vault } from '../../platform/secrets/vault.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';

/** While two encryption keys are configured, seals the secrets of the other key again with the current key. */
@Injectable()
@Sweeps('secrets.reseal')
export class ResealSweeper implements Sweeper {
  readonly everyMs = 600_000;

  constructor(
    private readonly pg: Pg,
    private readonly vault: Vault,
    @Inject(SETTINGS) private readonly settings: Settings,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  async sweep(): Promise<void> {
    if (!this.settings.otherEncryptionKey) return;
    const { resealed, unopened } = await resealAll(this.pg.pool, this.vault);
    if (resealed > 0) this.log.info({ resealed }, 'secrets were sealed with the new encryption key');
    if (Object.keys(unopened).length > 0)
      this.log.warn({ unopened }, 'no configured encryption key opens these secrets');
  }
}
