import { Inject, Injectable } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import type { CallLimit } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { Metrics } from '../platform/telemetry/metrics.js';
import type { Identity } from './auth.service.js';
import { Buckets } from './limits/limits.js';

/** Rate limits of all doors, for each principal and org, counted in this process. */
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

  /** Counts one request. Throws `rate_limited` with the seconds to wait. */
  admit({ org, principal }: Pick<Identity, 'org' | 'principal'>): void {
    // The principal is checked first, so that its refused requests do not use up the limit of its org.
    this.takeFrom(this.principals, keyOf({ org, principal }), 'principal');
    this.takeFrom(this.orgs, org.id, 'org');
  }

  /** Returns the remaining requests of the limit that is closer to its end. */
  left({ org, principal }: Pick<Identity, 'org' | 'principal'>): CallLimit {
    const [ofPrincipal, ofOrg] = [this.principals.left(keyOf({ org, principal })), this.orgs.left(org.id)];
    return ofOrg.remaining < ofPrincipal.remaining ? ofOrg : ofPrincipal;
  }

  private takeFrom(buckets: Buckets, key: string, scope: 'org' | 'principal'): void {
    const retryAfterSeconds = buckets.takeToken(key, systemClock.now());
    if (retryAfterSeconds === 0) return;
    this.metrics.limited.inc({ scope });
    throw new RialtoError('rate_limited', {
      message: `the ${scope} sent too many requests`,
      data: { retryAfterSeconds, limit: buckets.left(key).limit },
    });
  }
}

function keyOf({ org, principal }: Pick<Identity, 'org' | 'principal'>): string {
  return `${org.id}:${principal.kind}:${principal.id}`;
}
