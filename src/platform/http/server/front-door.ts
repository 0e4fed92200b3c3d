import type { RequestListener } from 'node:http';
import { Inject, Injectable } from '@nestjs/common';
import { newId } from '../../../kernel/ids.js';
import { SETTINGS, type Settings } from '../../config/settings.js';
import { HttpWatch } from '../../telemetry/http-watch.js';
import { LOGGER, type Logger } from '../../telemetry/logger.js';
import type { DoorRequest, DoorResponse, HotRoute, Target } from '../http.types.js';
import { answerCors } from './cors.js';
import { reachableAt, type Reachable } from './origin-check.js';
import { sendProblem } from '../problem.js';

const none = new URLSearchParams();
const requestIdShape = /^[\w.:-]{1,128}$/;

/**
 * The only request listener of the server. It gives every request its id, serves the hot routes itself and passes the
 * rest to Express, which costs five times as much as a bare request (decisions: fast path).
 */
@Injectable()
export class FrontDoor {
  private readonly routes: HotRoute[] = [];

  private readonly reachable: Reachable;

  constructor(
    private readonly watch: HttpWatch,
    @Inject(LOGGER) private readonly log: Logger,
    @Inject(SETTINGS) settings: Settings,
  ) {
    this.reachable = reachableAt(settings);
  }

  add(route: HotRoute): void {
    this.routes.push(route);
  }

  get table(): readonly HotRoute[] {
    return this.routes;
  }

  /**
   * @param express the listener that Nest made.
   * @param open tells whether this process serves the door at a path.
   */
  front(express: RequestListener, open: (path: string) => boolean): RequestListener {
    return (incoming, response) => {
      const request = incoming as DoorRequest;
      request.requestId = requestIdOf(request.headers['x-request-id']);
      response.setHeader('X-Request-Id', request.requestId);
      const target = targetOf(request.url ?? '/');
      if (!open(target.path)) return sendProblem(request, response, 'not_found');
      for (const route of this.routes) {
        const params = route.match(target.path);
        if (params) return this.serveRoute(route, request, response, { params, ...target });
      }
      this.watch.observe(request, response, () => (request as { route?: { path?: string } }).route?.path ?? 'other');
      express(request, response);
    };
  }

  private serveRoute(
    route: HotRoute,
    request: DoorRequest,
    response: DoorResponse,
    target: Target & { params: Record<string, string> },
  ): void {
    this.watch.observe(request, response, () => route.template);
    if (route.cors && answerCors(request, response, route.methods, this.reachable)) return;
    if (!route.methods.includes(request.method ?? '')) {
      response.setHeader('Allow', route.methods.join(', '));
      return sendProblem(request, response, 'method_not_allowed');
    }
    route.handle(request, response, target, target.params).catch((err: unknown) => {
      this.log.error({ err, requestId: request.requestId }, 'a request failed');
      if (response.headersSent) response.destroy();
      else sendProblem(request, response, 'internal');
    });
  }
}

/** Returns the id that a caller gave its request when it is valid for logs and headers, else a new one. */
export function requestIdOf(given: unknown): string {
  return typeof given === 'string' && requestIdShape.test(given) ? given : newId();
}

export function targetOf(url: string): Target {
  const mark = url.indexOf('?');
  return mark < 0
    ? { path: url, query: none }
    : { path: url.slice(0, mark), query: new URLSearchParams(url.slice(mark + 1)) };
}
