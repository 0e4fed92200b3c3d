import { Inject, Injectable } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { Metrics } from '../platform/telemetry/metrics.js';
import type { Identity } from './auth/auth.service.js';
import { take, type Bucket } from './limits.js';

const maxBuckets = 20_000;

/** Rate limits of all doors, per principal and per org, counted in this process. */
@Injectable()
export class LimitsService {
  private readonly buckets = new Map<string, Bucket>();

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly metrics: Metrics,
  ) {}

  /** Throws `rate_limited` with the seconds to wait. */
  admit({ org, principal }: Pick<Identity, 'org' | 'principal'>): void {
    // The principal pays first: what it may not send does not drain its org.
    this.takeFrom(
      `principal:${org.id}:${principal.kind}:${principal.id}`,
      this.settings.RIALTO_RATE_LIMIT_PRINCIPAL,
      'principal',
    );
    this.takeFrom(`org:${org.id}`, this.settings.RIALTO_RATE_LIMIT_ORG, 'org');
  }

  private takeFrom(key: string, perMinute: number, scope: 'org' | 'principal'): void {
    const { bucket, retryAfterSeconds } = take(this.buckets.get(key), perMinute, systemClock.now());
    this.buckets.delete(key); // moves the key to the end, so the oldest is evicted
    this.buckets.set(key, bucket);
    if (this.buckets.size > maxBuckets) this.buckets.delete(this.buckets.keys().next().value!);
    if (retryAfterSeconds === 0) return;
    this.metrics.limited.inc({ scope });
    throw new RialtoError('rate_limited', {
      message: `the ${scope} sent too many requests`,
      data: { retryAfterSeconds },
    });
  }
}
