import type { Transport } from '@modelcontextprotocol/client';
import type { JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import type { Approach } from './era-plan.js';
import type { Slots } from '../programs/program-slots.js';
import type { Root, UpstreamTransport } from '../upstream.types.js';

export interface ConnectionOptions {
  /** What it is called in errors. */
  readonly server: string;
  readonly transport: () => Promise<Transport>;
  /** False: after a failure nobody connects again until somebody asks for it. */
  readonly autoReconnect: boolean;
  /** Its lists changed, as it says. */
  readonly changed: () => void;
  readonly era?: Approach;
  /** It was seen before that the server bears no request before `initialize`. */
  readonly wantsInitialize?: boolean;
  /** How its server is reached; absent: as by a socket. */
  readonly transportKind?: UpstreamTransport;
  /** The one client whose calls it serves: it may be asked what it declared. On a line of all nobody is asked anything. */
  readonly owner?: Pick<Peer, 'capabilities' | 'isPassing'>;
  /** What it is told when it asks for roots; none: whatever its caller has. */
  readonly roots?: readonly Root[];
  /** Whatever the server says; present for a line that is to hear of changes at all. */
  readonly heard?: (method: string, params: JsonObject) => void;
  /** Room for the program that its server is; absent: it needs none. */
  readonly slots?: Slots;
  readonly times?: ConnectionTimes;
}

export interface ConnectionTimes {
  readonly connectMs: number;
  /** For the answer to the question whether a server speaks the 2026-07-28 revision. */
  readonly probeMs?: number;
  /** As OpeningPlan has it. */
  readonly hushMs?: number;
  /** After so many failures in a row. */
  readonly pauseMs: (failures: number) => number;
}

export interface CallOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Who may be asked and told things meanwhile. */
  readonly peer?: Peer;
  /** On whose behalf: kind and id of a principal. */
  readonly caller?: string;
  /** What a request of the 2026-07-28 revision has beside the headers of its protocol. */
  readonly headers?: Readonly<Record<string, string>>;
  /** What its caller says of the request to the server. */
  readonly meta?: JsonObject;
  /** What a request of the 2026-07-28 revision declares; absent: what `peer` can be asked for. */
  readonly capabilities?: JsonObject;
  /** Asked once more before it is said on a connection whose server was not asked yet what it has; throws what keeps it from being said. */
  readonly stillMay?: () => Promise<void>;
  /** Between the connection that it goes by and what is said on that; throws what keeps it from being said. */
  readonly opened?: () => Promise<void> | undefined;
}
