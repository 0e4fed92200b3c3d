/**
 * One outbound request. `deadlineMs` covers all of it: waiting, connecting, every redirect and the last byte of the
 * body.
 */
export interface SafeRequest {
  method: string;
  url: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  deadlineMs: number;
  /** Limit of the body in bytes, both compressed and inflated. */
  maxBytes: number;
  signal?: AbortSignal | readonly AbortSignal[];
  /** Set for a request that must not be repeated: the kind of receiver, for the metrics. */
  purpose?: 'agent' | 'service' | 'webhook';
  /**
   * Redirects to follow, for GET and HEAD only; 0 by default. Otherwise, and after the last allowed hop, a 3xx is
   * returned as it is.
   */
  redirects?: number;
}

export interface SafeResponse {
  status: number;
  /** Lower-case names; repeated headers joined by `, `. */
  headers: Record<string, string>;
  body: Buffer;
  /** The URL that answered, after redirects. */
  url: string;
}

export interface SafeStream {
  status: number;
  headers: Record<string, string>;
  /** Throws a RialtoError when it breaks off. `destroy()` ends a body that is not read to its end. */
  body: AsyncIterable<Buffer> & { destroy(): void };
  url: string;
}

/** The first bytes of an answer. */
export interface SafeBeginning extends SafeResponse {
  /** True when the body continued, or may have continued. */
  isCut: boolean;
}
