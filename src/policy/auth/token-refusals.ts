import { createHash } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { BoundedMap } from '../../kernel/bounded-map.js';
import { AuditService } from '../../audit/audit.service.js';
import { systemClock } from '../../kernel/clock.js';
import { storableText } from '../../kernel/json.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { Buckets } from '../limits/limits.js';
import type { TokenRefused } from './token-verifier.js';

const maxNoted = 10_000;
/** Limit for each org, so that a member with many forged tokens cannot fill the audit chain of the org. */
const notesPerMinute = 10;

/** Records refused credentials in log, metrics and audit. The caller gets no details. */
@Injectable()
export class TokenRefusals {
  private readonly noted = new BoundedMap<string, true>(maxNoted);
  private readonly notes = new Buckets(notesPerMinute);

  constructor(
    private readonly audit: AuditService,
    private readonly metrics: Metrics,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  countRefusal(): void {
    this.metrics.authFailures.inc();
  }

  /**
   * Logs why a token was refused. A token with a valid signature that claims another tenant, or a subject that is not
   * a member, becomes the audit event `token.tenant_mismatch` of the key's org (abuse case 4): once for each token
   * and process, and at most ten times a minute. The log has all of them.
   */
  async recordRefusal({ reason, org, sub }: TokenRefused, token: string): Promise<void> {
    this.log.info({ reason, org: org?.slug }, 'a token was refused');
    if (reason !== 'tenant_mismatch' || !org) return;
    const tokenHash = createHash('sha256').update(token).digest('hex');
    if (this.noted.has(tokenHash) || this.notes.takeToken(org.id, systemClock.now()) > 0) return;
    this.noted.set(tokenHash, true);
    try {
      const personal = sub === undefined ? [] : [{ subject: `user:${sub}`, facts: { sub: storableText(sub, 256) } }];
      await this.audit.note(org.id, 'token.tenant_mismatch', { tokenHash, outcome: 'denied' }, personal);
    } catch (err) {
      this.noted.delete(tokenHash);
      this.log.error({ err }, 'a refused token could not be recorded in the audit');
    }
  }
}
