import type { OrgId } from './ids.js';
import type { JsonObject } from './json.js';
import type { Peer } from './peer.js';
import type { TrustTier } from './trust.js';

export const roles = ['viewer', 'member', 'admin'] as const;
export type Role = (typeof roles)[number];

/** Returns the role with fewer rights of two. */
export function lesserRole(one: Role, other: Role): Role {
  return roles.indexOf(one) < roles.indexOf(other) ? one : other;
}

/** The tenant of a call: the owner of the key that verified the call. */
export interface OrgRef {
  readonly id: OrgId;
  readonly slug: string;
  /** Read it with `trustTierOf` (trust.ts), which knows the default. */
  readonly trustTier?: TrustTier;
}

/** The caller. `kind` and `id` are the Cedar entity (User, A2AAgent, Service, Anonymous). */
export interface Principal {
  readonly kind: 'user' | 'agent' | 'service' | 'anonymous';
  /** The subject of a token, the slug of an agent, or the name of a service key. */
  readonly id: string;
  readonly role: Role;
  readonly groups: readonly string[];
}

/** Formats a principal as `kind:id`: the key for everything that belongs to one caller. */
export function callerOf({ kind, id }: Pick<Principal, 'kind' | 'id'>): string {
  return `${kind}:${id}`;
}

/** Returns the groups of a principal. The name of a role is the group of its holders, and no other group has it. */
export function groupsOf({ role, groups }: Principal): string[] {
  return [role, ...groups.filter((group) => !(roles as readonly string[]).includes(group))];
}

export type Surface = 'mcp' | 'a2a' | 'a2e' | 'rest' | 'system';

/** W3C trace context of a call (traceparent: version-traceId-spanId-flags). */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly sampled: boolean;
  readonly state?: string;
}

/** The agents that delegated before a call, and until when its answer is of use. */
export interface Lineage {
  /** Agents behind this call, the outermost first; each name has at most 200 characters. */
  readonly path: readonly string[];
  /** Milliseconds since the epoch. After this time no caller waits for the result. */
  readonly deadlineAt?: number;
  /** The trace of the call. It is stored with a task and is not part of the signed header. */
  readonly trace?: TraceContext;
}

/** The remaining calls of a rate limit. */
export interface CallLimit {
  /** The full number of calls: those of a minute, or the size of a burst. */
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until the full number of calls is available again. */
  readonly secondsLeft: number;
}

/** Facts about the call that a service serves; the first argument of every act. */
export interface CallContext {
  readonly org: OrgRef;
  readonly principal: Principal;
  readonly surface: Surface;
  /** `X-Request-Id`: sent by the caller or created here; repeated in answers, errors and logs. */
  readonly requestId: string;
  /** Number of delegations behind this call; 0 for a call from outside. */
  readonly depth: number;
  /** Absent for a call from outside. */
  readonly lineage?: Lineage;
  /** When the caller's credential expires, in milliseconds since the epoch. Every stream that it opened ends then. */
  readonly expiresAt?: number;
  /** The `jti` of the token of the call. */
  readonly tokenId?: string;
  /** True when the credential of the call is a token that was issued for this gateway. */
  readonly isForAudience?: boolean;
  /** Verbs that a person approved where the token of the call was issued. Policies read it as `context.approved`. */
  readonly approvedActions?: readonly string[];
  readonly trace?: TraceContext;
  /** Aborts when the caller disconnects or cancels. */
  readonly signal?: AbortSignal;
  /** Present when the answer can report the remaining calls of a limit. */
  readonly tellLimit?: (limit: CallLimit) => void;
  /** Present while the caller's client can receive requests and notifications. */
  readonly peer?: Peer;
  /**
   * `_meta` of the MCP client's request, for the server that finally serves it. It plays no part in decisions or
   * records, so a call that a person approved is sent without it.
   */
  readonly meta?: JsonObject;
}

/**
 * True when the call is made by this caller.
 *
 * @param caller a value of `callerOf`; undefined matches every caller.
 */
export function isOf({ principal }: CallContext, caller: string | undefined): boolean {
  return caller === undefined || callerOf(principal) === caller;
}
