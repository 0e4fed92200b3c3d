import type { JsonObject } from './json.js';

/** The MCP client behind a call, as far as whoever serves the call may speak to it while it lasts. */
export interface Peer {
  /** The calls of one client have one key. */
  readonly key: string;
  /** The generation of its protocol. One of the 2026-07-28 revision takes questions as a result, and calls again with the answers. */
  readonly era: 'legacy' | 'modern';
  /** Whether it can be asked things, or hears what servers log: calls of others are kept apart from its own then. */
  readonly wantsAlone: boolean;
  /** No later call has its key: what was opened for it may serve another that can be asked for the same. */
  readonly isPassing?: boolean;
  /** What it declared that it can be asked for: `sampling`, `elicitation`, `roots`. */
  readonly capabilities: JsonObject;
  /** From which level on it wants to hear what a server logs; undefined while it did not say. */
  readonly logLevel?: string;
  /** By which it wants to hear of progress. */
  readonly progressToken?: string | number | bigint;
  /** The headers of its request, by lower-case names, where its protocol has them agree with the arguments of a call. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
  /** Its answers to the questions of the result before: `inputResponses` and `requestState`. */
  readonly answers?: JsonObject;
  /** Asks its client on behalf of an MCP server, and throws what the client answers in place of a result. */
  ask(method: string, params: JsonObject, signal?: AbortSignal, server?: string): Promise<JsonObject>;
  /** A notification of an MCP server; lost when nobody listens. */
  tell(method: string, params: JsonObject, server?: string): void;
}
