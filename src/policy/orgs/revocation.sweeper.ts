import { Injectable } from '@nestjs/common';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { TokenSecretStore } from './token-secret.store.js';

/** Deletes revocations and secrets that no token needs any more. */
@Injectable()
@Sweeps('token.revocations')
export class RevocationSweeper implements Sweeper {
  readonly everyMs = 600_000;

  constructor(private readonly store: TokenSecretStore) {}

  sweep(): Promise<void> {
    return this.store.dropExpired();
  }
}
