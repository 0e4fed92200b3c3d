import { Inject, Injectable } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { Metrics } from '../platform/telemetry/metrics.js';
import type { Identity } from './auth/auth.service.js';
import { Buckets } from './limits.js';

/** Rate limits of all doors, per principal and per org, counted in this process. */
@Injectable()
export class LimitsService {
  private readonly principals: Buckets;
  private readonly orgs: Buckets;

  constructor(
    @Inject(SETTINGS) settings: Settings,
    private readonly metrics: Metrics,
  ) {
    this.principals = new Buckets(settings.RIALTO_RATE_LIMIT_PRINCIPAL);
    this.orgs = new Buckets(settings.RIALTO_RATE_LIMIT_ORG);
  }

  /** Throws `rate_limited` with the seconds to wait. */
  admit({ org, principal }: Pick<Identity, 'org' | 'principal'>): void {
    // The principal pays first: what it may not send does not drain its org.
    this.takeFrom(this.principals, `${org.id}:${principal.kind}:${principal.id}`, 'principal');
    this.takeFrom(this.orgs, org.id, 'org');
  }

  private takeFrom(buckets: Buckets, key: string, scope: 'org' | 'principal'): void {
    const retryAfterSeconds = buckets.take(key, systemClock.now());
    if (retryAfterSeconds === 0) return;
    this.metrics.limited.inc({ scope });
    throw new RialtoError('rate_limited', {
      message: `the ${scope} sent too many requests`,
      data: { retryAfterSeconds },
    });
  }
}
