import type { OrgId } from './ids.js';
import type { JsonObject } from './json.js';
import type { Peer } from './peer.js';

export const roles = ['viewer', 'member', 'admin'] as const;
export type Role = (typeof roles)[number];

/** The one that may do less. */
export function lesserRole(one: Role, other: Role): Role {
  return roles.indexOf(one) < roles.indexOf(other) ? one : other;
}

/** The tenant a call belongs to: the owner of the key that verified it. */
export interface OrgRef {
  readonly id: OrgId;
  readonly slug: string;
}

/** Who is calling. `kind` and `id` are the Cedar entity (User, A2AAgent, Service, Anonymous). */
export interface Principal {
  readonly kind: 'user' | 'agent' | 'service' | 'anonymous';
  /** The subject of a token, the slug of an agent, the name of a service key. */
  readonly id: string;
  readonly role: Role;
  readonly groups: readonly string[];
}

/** A principal as one text: a key of what is its own. */
export function callerOf({ kind, id }: Pick<Principal, 'kind' | 'id'>): string {
  return `${kind}:${id}`;
}

export type Surface = 'mcp' | 'a2a' | 'a2e' | 'rest' | 'system';

/** W3C trace context of a call (traceparent: version-traceId-spanId-flags). */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly sampled: boolean;
  readonly state?: string;
}

/** Who delegated to whom before a call, and for how long its answer counts. */
export interface Lineage {
  /** The agents behind this call, the first first; each at most 200 characters. */
  readonly path: readonly string[];
  /** Milliseconds since the epoch; afterwards nobody waits for what comes of it. */
  readonly deadlineAt?: number;
  /** The trace of the call; kept with a task, and no part of the signed header. */
  readonly trace?: TraceContext;
}

/** What is left of how often something may be called. */
export interface CallLimit {
  /** Calls when none was made yet: a minute's, or what may come at once. */
  readonly limit: number;
  readonly remaining: number;
  /** Until all of them are there again. */
  readonly secondsLeft: number;
}

/** Everything a service may know of the call it serves; the first argument of every act. */
export interface CallContext {
  readonly org: OrgRef;
  readonly principal: Principal;
  readonly surface: Surface;
  /** `X-Request-Id`, taken from the caller or made; echoed in answers, errors and logs. */
  readonly requestId: string;
  /** Hops of delegation behind this call; 0 for a call from outside. */
  readonly depth: number;
  /** Absent for a call from outside. */
  readonly lineage?: Lineage;
  /** Milliseconds since the epoch at which the caller's credential ends, and with it every stream it opened. */
  readonly expiresAt?: number;
  /** The `jti` of the token that it came with. */
  readonly tokenId?: string;
  readonly trace?: TraceContext;
  /** Aborts when the caller goes away or cancels. */
  readonly signal?: AbortSignal;
  /** Present where the answer can say what is left of a limit. */
  readonly tellLimit?: (limit: CallLimit) => void;
  /** Present while the caller's client may be asked and told things. */
  readonly peer?: Peer;
  /** What an MCP client says of its request to whoever serves it at last; no part of what is decided or recorded. */
  readonly meta?: JsonObject;
}

/** @param caller one of `callerOf`; absent: everybody. */
export function isOf({ principal }: CallContext, caller: string | undefined): boolean {
  return caller === undefined || callerOf(principal) === caller;
}
