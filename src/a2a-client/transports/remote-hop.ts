import type { Deadline } from './deadline.js';
import type { Endpoint } from './endpoint-choice.js';

/** How long one request may take, and who may end it before. */
export interface HopLimits {
  readonly deadline: Deadline;
  /** Abort when the caller goes away or cancels. */
  readonly signals: readonly AbortSignal[];
}

/** What a request may carry besides its body; asked for each request anew, so that secrets live no longer than needed. */
export interface HopHeaders {
  /** The headers for this URL, names in lower case: a credential only where it belongs (abuse 18). */
  of(url: string, limits: HopLimits): Promise<Record<string, string>>;
  /** What the headers given so far prove us with: nothing that an agent says back of it goes on to anybody. */
  readonly sent?: ReadonlySet<string>;
  /** After a 401: true when the next `of` gives another credential, so that one more try makes sense. */
  renew(): boolean;
}

/** One way to a remote agent and the limits of one call on it. */
export interface RemoteHop extends HopLimits {
  readonly endpoint: Endpoint;
  readonly headers: HopHeaders;
}
