import type { Transport } from '@modelcontextprotocol/client';
import type { JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import type { Approach } from './era-plan.js';
import type { Slots } from '../programs/program-slots.js';
import type { Root, UpstreamTransport } from '../upstream.types.js';
import type { UpstreamConnection } from './upstream-connection.js';

export interface ConnectionOptions {
  /** Name of the server in errors. */
  readonly server: string;
  readonly transport: () => Promise<Transport>;
  /** False: after a failure the connection is not reopened until an admin refreshes it. */
  readonly autoReconnect: boolean;
  /** Called when the server announces that its lists changed. */
  readonly changed: () => void;
  readonly era?: Approach;
  /** True when an earlier connection showed that the server accepts no request before `initialize`. */
  readonly wantsInitialize?: boolean;
  /** Transport of the server; absent: treated like a WebSocket. */
  readonly transportKind?: UpstreamTransport;
  /**
   * The only client that the connection serves; it can be asked for what it declared. No client can be asked on a
   * shared connection.
   */
  readonly owner?: Pick<Peer, 'capabilities' | 'isPassing'>;
  /** Configured answer to `roots/list`; empty: the roots of the caller. */
  readonly roots?: readonly Root[];
  /** Called with each notification of the server; absent for a connection that subscribes to nothing. */
  readonly heard?: (method: string, params: JsonObject) => void;
  /** Slots for the program of the server; absent when it needs none. */
  readonly slots?: Slots;
  readonly times?: ConnectionTimes;
}

export interface ConnectionTimes {
  readonly connectMs: number;
  /** Timeout of the request that tests whether a server speaks the 2026-07-28 revision. */
  readonly probeMs?: number;
  /** See OpeningPlan. */
  readonly hushMs?: number;
  /** Returns the delay after the given number of failures in a row. */
  readonly pauseMs: (failures: number) => number;
}

/** How long a call may take. */
export interface CallLimits {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface CallOptions extends CallLimits {
  /** Client that can be asked and notified during the call. */
  readonly peer?: Peer;
  /** Kind and id of the principal that the call is made for. */
  readonly caller?: string;
  /** Additional headers of a request of the 2026-07-28 revision. */
  readonly headers?: Readonly<Record<string, string>>;
  /** `_meta` members that the caller sends to the server. */
  readonly meta?: JsonObject;
  /** Client capabilities of a request of the 2026-07-28 revision; absent: those of `peer`. */
  readonly capabilities?: JsonObject;
  /** Runs after the connection opened and before the request is sent. Throws to prevent the request. */
  readonly opened?: (connection: UpstreamConnection, limits: CallLimits) => Promise<void> | undefined;
  /** True for requests of the gateway itself, which do not count as a use of the connection. */
  readonly isOfGateway?: boolean;
}
