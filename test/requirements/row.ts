/** The piece of the product that a planned requirement waits for. */
export type Area =
  | 'A2A server'
  | 'tasks'
  | 'webhooks'
  | 'continuations'
  | 'dispatch and routing'
  | 'upstream MCP servers and A2E'
  | 'console'
  | 'published agents'
  | 'messaging and mentions'
  | 'hardening';

/**
 * `seed`: named by a reference document, must work; `src`: found in its source or docs, should work; `spec`: required
 * by the protocol.
 */
export type Origin = 'seed' | 'src' | 'spec';

interface Row {
  readonly source: Origin;
  /** A short description. */
  readonly behaviour: string;
}

/** One requirement: a test performs its acceptance check, or it waits for an area of work, or it is left out. */
export type Requirement =
  | (Row & { readonly status: 'done' })
  | (Row & { readonly status: 'planned'; readonly for: Area })
  | (Row & { readonly status: 'left-out'; readonly why: string });

export function done(source: Origin, behaviour: string): Requirement {
  return { source, behaviour, status: 'done' };
}

export function planned(source: Origin, area: Area, behaviour: string): Requirement {
  return { source, behaviour, status: 'planned', for: area };
}
