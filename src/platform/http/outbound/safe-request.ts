/** One outbound request. `deadlineMs` bounds all of it: waiting, connecting, every redirect and the body's last byte. */
export interface SafeRequest {
  method: string;
  url: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  deadlineMs: number;
  /** Cap on the body, on the wire and inflated. */
  maxBytes: number;
  signal?: AbortSignal | readonly AbortSignal[];
  /** Of what must not be done twice: who takes it, for counting. */
  purpose?: 'agent' | 'service' | 'webhook';
  /** GET and HEAD only; 0 by default: a 3xx is returned as it is, as is the last one when hops run out. */
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
  /** Throws a RialtoError when it breaks off; `destroy()` ends a body that nobody will read. */
  body: AsyncIterable<Buffer> & { destroy(): void };
  url: string;
}

/** The first bytes of an answer. */
export interface SafeBeginning extends SafeResponse {
  /** The body went on, or may have. */
  isCut: boolean;
}
