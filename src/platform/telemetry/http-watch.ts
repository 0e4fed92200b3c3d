import { Inject, Injectable } from '@nestjs/common';
import { systemClock } from '../../kernel/clock.js';
import { SETTINGS, type Settings } from '../config/settings.js';
import { clientAddress, parseTrustProxy, type TrustProxy } from '../http/server/client-address.js';
import type { DoorRequest } from '../http/http.types.js';
import { LOGGER, type Logger } from './logger.js';
import { Metrics } from './metrics.js';

const quiet = new Set(['/livez', '/readyz']);

/** The part of a response that is watched. */
interface Watched {
  readonly statusCode: number;
  once(event: 'close', listen: () => void): unknown;
}

/** Watches each request to its end. Records one measurement and one log line, with the route and never the query. */
@Injectable()
export class HttpWatch {
  private last?: { readonly request: DoorRequest; readonly route: () => string };

  private readonly trust: TrustProxy;

  constructor(
    private readonly metrics: Metrics,
    @Inject(LOGGER) private readonly log: Logger,
    @Inject(SETTINGS) settings: Settings,
  ) {
    this.trust = parseTrustProxy(settings.RIALTO_TRUST_PROXY);
  }

  /** Returns the request that began last: its route, and its org once that is known. */
  latest(): { readonly route: string; readonly org?: string } | undefined {
    return this.last && { route: this.last.route(), org: this.last.request.ctx?.org.slug };
  }

  /** `route` is called when the response has ended, because the route is known only then. */
  observe(request: DoorRequest, response: Watched, route: () => string): void {
    this.last = { request, route };
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
