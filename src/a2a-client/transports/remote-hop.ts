import type { Deadline } from '../../kernel/abort.js';
import type { Endpoint } from './endpoint-choice.js';

/** Time limit of one request, and the signals that end it earlier. */
export interface HopLimits {
  readonly deadline: Deadline;
  /** Abort when the caller disconnects or cancels. */
  readonly signals: readonly AbortSignal[];
}

/**
 * Headers that a request may carry; asked for each request again, so that secrets stay in memory only as long as
 * needed.
 */
export interface HopHeaders {
  /** Returns the headers for this URL, with names in lower case; a credential only for its own origin (abuse 18). */
  headersFor(url: string, limits: HopLimits): Promise<Record<string, string>>;
  /** Credentials in the headers returned so far: they are removed from everything that the agent answers. */
  readonly sent?: ReadonlySet<string>;
  /**
   * Called after a 401: returns true when the next `headersFor` gives another credential, so that one more try can
   * succeed.
   */
  renew(): boolean;
}

/** An endpoint of a remote agent and the limits of one call to it. */
export interface RemoteHop extends HopLimits {
  readonly endpoint: Endpoint;
  readonly headers: HopHeaders;
}
