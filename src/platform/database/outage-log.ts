import { systemClock, type Clock } from '../../kernel/clock.js';
import type { Logger } from '../telemetry/logger.js';
import { isDatabaseAway } from './outage.js';

/** The outage is over after this many milliseconds without a failure. */
const quietMs = 10_000;

/**
 * Wraps a logger so that an outage of the database is logged in two lines: its beginning, and its end with the number
 * of failures. Otherwise sweeps, leases and jobs would log the same failure many times a second.
 */
export function tellingOutagesOnce(log: Logger, clock: Pick<Clock, 'elapsed'> = systemClock): Logger {
  let outage: { readonly since: number; last: number; failures: number } | undefined;
  const checkEnd = (): void => {
    if (!outage) return;
    const { since, last, failures } = outage;
    if (clock.elapsed() - last < quietMs) return void setTimeout(checkEnd, quietMs).unref();
    outage = undefined;
    log.info({ seconds: Math.round((last - since) / 1_000), failures }, 'the database answers again');
  };
  const once =
    (level: 'warn' | 'error') =>
    (facts: unknown, message?: string): void => {
      if (!isDatabaseAway((facts as { err?: unknown } | undefined)?.err)) return log[level](facts, message);
      const now = clock.elapsed();
      if (!outage) {
        outage = { since: now, last: now, failures: 0 };
        log.warn(
          facts,
          `${message ?? 'a statement failed'}; the database is not available; further failures are only counted`,
        );
        setTimeout(checkEnd, quietMs).unref();
      }
      outage.last = now;
      outage.failures++;
    };
  const levels: Partial<Record<PropertyKey, unknown>> = { warn: once('warn'), error: once('error') };
  return new Proxy(log, { get: (of, name) => levels[name] ?? (Reflect.get(of, name, of) as unknown) });
}
