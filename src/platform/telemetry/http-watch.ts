import { systemClock } from '../../kernel/clock.js';
import { clientAddress, type TrustProxy } from '../http/client-address.js';
import type { DoorRequest, DoorResponse } from '../http/http.types.js';
import type { Logger } from './logger.js';
import type { Metrics } from './metrics.js';

const quiet = new Set(['/livez', '/readyz']);

/** Watches each request to its end: one measurement and one line, with the route and never the query. */
export class HttpWatch {
  constructor(
    private readonly metrics: Metrics,
    private readonly log: Logger,
    private readonly trust: TrustProxy,
  ) {}

  /** `route` is asked when the response has ended, for only then it is known. */
  observe(request: DoorRequest, response: DoorResponse, route: () => string): void {
    const start = systemClock.elapsed();
    response.once('close', () => {
      const ms = systemClock.elapsed() - start;
      const [method, template, status] = [request.method ?? '', route(), response.statusCode];
      this.metrics.http.observe({ method, route: template, status: String(status) }, ms / 1_000);
      if (!this.log.isLevelEnabled('info') || quiet.has(template)) return;
      const address = clientAddress(request, this.trust);
      const org = request.ctx?.org.slug;
      this.log.info(
        { requestId: request.requestId, method, route: template, status, ms: Math.round(ms * 10) / 10, address, org },
        'request',
      );
    });
  }
}
