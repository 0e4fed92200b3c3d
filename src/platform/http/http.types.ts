import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CallContext } from '../../kernel/call-context.js';

/** A request behind the front door, which sets the id before any door sees the request. */
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

/** A hot route, served before Express. It is documented, limited and measured like a controller. */
export interface HotRoute {
  /** The path in metrics, OpenAPI and the route matrix, e.g. `/mcp/servers/{id}`. */
  readonly template: string;
  readonly methods: readonly string[];
  /** Marks a protocol door; pages of the gateway's own origins may read its answers. */
  readonly cors?: true;
  /** One line for the API description. */
  readonly summary: string;
  /** Returns the parameters of the path, or undefined when the path belongs to another route. */
  match(path: string): Record<string, string> | undefined;
  handle(request: DoorRequest, response: DoorResponse, target: Target, params: Record<string, string>): Promise<void>;
}
