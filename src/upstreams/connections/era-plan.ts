import { RialtoError } from '../../kernel/errors.js';
import { isRefusal, upstreamError } from './upstream-error.js';
import type { UpstreamTransport } from '../upstream.types.js';

/**
 * `auto`: tests first whether the server speaks the 2026-07-28 revision; `legacy`: starts with `initialize`; `modern`:
 * only that revision.
 */
export type Approach = 'auto' | 'legacy' | 'modern';

/** One attempt to open a connection. */
export interface Attempt<Opened> {
  readonly opened: Promise<Opened>;
  /** Returns whether the transport was opened, so that messages could be sent to the server. */
  readonly isStarted: () => boolean;
  /** Returns whether `initialize` was sent because the server did not answer the first request in time. */
  readonly isHasty: () => boolean;
  /** Closes the connection now, or as soon as it opens. */
  readonly close: () => void;
}

export interface OpeningPlan<Opened> {
  readonly transport: UpstreamTransport;
  readonly approach: Approach;
  /** True when an earlier connection showed that the server answers nothing before `initialize`. */
  readonly seemsLegacy: boolean;
  /**
   * How long a program may stay silent before a second one is started that gets `initialize` first, in milliseconds.
   */
  readonly hushMs: number;
  /** @param isPatient waits for the answer to the first request until the connection timeout. */
  readonly start: (approach: Approach, isPatient?: boolean) => Attempt<Opened>;
}

export interface Opening<Opened> {
  readonly opened: Opened;
  /** Whether the server must get `initialize` as its first request. */
  readonly wantsInitialize: boolean;
}

/**
 * Opens a connection in the newest era that its server supports (MCP 2026-07-28, backward compatibility). Servers of
 * the 2025 era may end or stay silent when the first request is not `initialize`; they get a new connection that starts
 * with it. A program that may only be slow to start is not ended for that. Throws the failure of the server.
 */
export async function openInEra<Opened>(plan: OpeningPlan<Opened>): Promise<Opening<Opened>> {
  const { approach, seemsLegacy, start } = plan;
  // The HTTP+SSE transport of 2024-11-05 supports no later revision.
  const isKnown = approach !== 'auto' || plan.transport === 'sse';
  if (isKnown) return openWith(plan, approach === 'auto' ? 'legacy' : approach);
  if (!seemsLegacy) return openAuto(plan);
  try {
    return { opened: await start('legacy').opened, wantsInitialize: true };
  } catch (thrown) {
    // The server may have been replaced by one that speaks only the later revision.
    if (!isRefusal(upstreamError(thrown, ''))) throw thrown;
    return { opened: await start('auto').opened, wantsInitialize: false };
  }
}

async function openWith<Opened>(
  { seemsLegacy, start }: OpeningPlan<Opened>,
  as: Approach,
  isPatient = false,
): Promise<Opening<Opened>> {
  return { opened: await start(as, isPatient).opened, wantsInitialize: seemsLegacy };
}

async function openAuto<Opened>(plan: OpeningPlan<Opened>): Promise<Opening<Opened>> {
  const { transport, hushMs, start } = plan;
  const auto = start('auto');
  const early = await outcomeOf(auto.opened, transport === 'stdio' ? hushMs : undefined);
  if (early && 'opened' in early) return { opened: early.opened, wantsInitialize: false };
  // A server that speaks only the later revision may have been slow to start; it has started by now.
  if (early && auto.isHasty() && isRefusal(upstreamError(early.thrown, ''))) return openWith(plan, 'auto', true);
  if (early && !mayWantInitialize(transport, auto.isStarted(), early.thrown)) throw early.thrown;
  const legacy = start('legacy');
  const attempts = early ? [legacy] : [auto, legacy];
  try {
    const first = await Promise.any(attempts.map(async (attempt) => ({ attempt, opened: await attempt.opened })));
    for (const attempt of attempts) if (attempt !== first.attempt) attempt.close();
    return { opened: first.opened, wantsInitialize: first.attempt === legacy };
  } catch (all) {
    const last = (all as AggregateError).errors.at(-1) as unknown;
    const wasSlow = !early || upstreamError(early.thrown, '').code === 'remote_timeout';
    if (wasSlow && isRefusal(upstreamError(last, ''))) {
      auto.close();
      return openWith(plan, 'auto', true);
    }
    throw early && isHttp(transport) && !wasSlow ? early.thrown : last;
  }
}

/** Returns the outcome of an attempt; undefined when there is none within the time. */
async function outcomeOf<Opened>(
  opened: Promise<Opened>,
  withinMs: number | undefined,
): Promise<{ opened: Opened } | { thrown: unknown } | undefined> {
  const settled = opened.then(
    (value) => ({ opened: value }),
    (thrown: unknown) => ({ thrown }),
  );
  if (withinMs === undefined) return settled;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), withinMs);
  });
  return Promise.race([settled, late]).finally(() => clearTimeout(timer));
}

/** Returns whether a server that failed at the first request may be one that accepts none before `initialize`. */
function mayWantInitialize(transport: UpstreamTransport, isStarted: boolean, thrown: unknown): boolean {
  const { code, data } = upstreamError(thrown, '');
  const status = data?.upstreamStatus;
  if (code === 'remote_timeout') return isStarted;
  if (isHttp(transport)) return code === 'remote_invalid_response' || (typeof status === 'number' && status >= 500);
  return isStarted && (code === 'remote_transport' || code === 'remote_invalid_response');
}

function isHttp(transport: UpstreamTransport): boolean {
  return transport === 'streamable-http';
}

/** Error for a connection that took too long to open. */
export function tooSlow(): RialtoError {
  return new RialtoError('remote_timeout', { message: 'the MCP server did not answer in time' });
}
