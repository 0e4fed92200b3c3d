import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CallContext } from '../../kernel/call-context.js';

/** A request as it passes the front door: the id is set before any door sees it. */
export interface DoorRequest extends IncomingMessage {
  requestId: string;
  /** Set by the guard of the door. */
  ctx?: CallContext;
  body?: unknown;
}

export type DoorResponse = ServerResponse;

/** A request split once: the path without the query. */
export interface Target {
  readonly path: string;
  readonly query: URLSearchParams;
}

/** A hot route, served in front of Express. Documented, limited and measured like a controller. */
export interface HotRoute {
  /** For metrics, OpenAPI and the route matrix, e.g. `/mcp/servers/{id}`. */
  readonly template: string;
  readonly methods: readonly string[];
  /** A door of a protocol, whose answers pages of the gateway's own origins may read. */
  readonly cors?: true;
  /** One line for the API description. */
  readonly summary: string;
  /** The parameters of the path, or undefined when it is not this route. */
  match(path: string): Record<string, string> | undefined;
  handle(request: DoorRequest, response: DoorResponse, target: Target, params: Record<string, string>): Promise<void>;
}
