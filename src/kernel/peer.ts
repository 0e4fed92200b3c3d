import type { JsonObject } from './json.js';

/** The MCP client behind a call: how the code that serves the call can speak to it while the call lasts. */
export interface Peer {
  /** The same for all calls of one client. */
  readonly key: string;
  /**
   * The generation of the client's protocol. A client of revision 2026-07-28 receives questions as a result and calls
   * again with the answers.
   */
  readonly era: 'legacy' | 'modern';
  /**
   * True when the client can answer questions or receives the log messages of servers. Its calls then use connections
   * that it does not share with other callers.
   */
  readonly wantsAlone: boolean;
  /**
   * True when no later call has this key: a connection opened for this client may serve another client with the same
   * capabilities.
   */
  readonly isPassing?: boolean;
  /** Requests that the client accepts, as it declared: `sampling`, `elicitation`, `roots`. */
  readonly capabilities: JsonObject;
  /** The lowest level of server log messages that the client wants; undefined until the client sets one. */
  readonly logLevel?: string;
  /** The token for progress notifications, when the client sent one. */
  readonly progressToken?: string | number | bigint;
  /**
   * Request headers by lower-case name, when the client's protocol requires them to agree with the arguments of the
   * call.
   */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
  /** The client's answers to the questions of the previous result: `inputResponses` and `requestState`. */
  readonly answers?: JsonObject;
  /** The texts of these questions by name, where they are known. A person who approves the answers reads them. */
  readonly questions?: JsonObject;
  /** Sends a request of an MCP server to the client. Throws the client's error when it answers with one. */
  ask(method: string, params: JsonObject, signal?: AbortSignal, server?: string): Promise<JsonObject>;
  /** Sends a notification of an MCP server to the client; it is lost when the client does not listen. */
  tell(method: string, params: JsonObject, server?: string): void;
}
