import { RialtoError } from '../../kernel/errors.js';
import { isRefusal, upstreamError } from './upstream-error.js';
import type { UpstreamTransport } from '../upstream.types.js';

/** `auto`: asks first whether the server speaks the 2026-07-28 revision; `legacy`: begins with `initialize`; `modern`: that revision or none. */
export type Approach = 'auto' | 'legacy' | 'modern';

/** One try to open a connection. */
export interface Attempt<Opened> {
  readonly opened: Promise<Opened>;
  /** Whether its server was there: something could be said to it. */
  readonly isStarted: () => boolean;
  /** Whether its server was spoken to with `initialize` because it did not answer the first question in time. */
  readonly isHasty: () => boolean;
  /** Ends what it opened, now or when it comes. */
  readonly close: () => void;
}

export interface OpeningPlan<Opened> {
  readonly transport: UpstreamTransport;
  readonly approach: Approach;
  /** It was seen before that it answers nothing before `initialize`. */
  readonly seemsLegacy: boolean;
  /** How long a program may say nothing at all until another is started that hears `initialize` first. */
  readonly hushMs: number;
  /** @param isPatient waits for the answer to the first question for as long as there is time. */
  readonly start: (approach: Approach, isPatient?: boolean) => Attempt<Opened>;
}

export interface Opening<Opened> {
  readonly opened: Opened;
  /** Whether the server has to be spoken to with `initialize` first. */
  readonly wantsInitialize: boolean;
}

/**
 * Opens a connection in the newest era that its server bears (MCP 2026-07-28, backward compatibility): servers of the 2025 era may end,
 * or say nothing, when the first request is not `initialize`; they get a new connection that begins with it. A program that may only be
 * slow to start is not ended for that. Throws what the server failed with.
 */
export async function openInEra<Opened>(plan: OpeningPlan<Opened>): Promise<Opening<Opened>> {
  const { approach, seemsLegacy, start } = plan;
  // The two endpoints of 2024-11-05 are of no later revision.
  const isKnown = approach !== 'auto' || plan.transport === 'sse';
  if (isKnown) return openAs(plan, approach === 'auto' ? 'legacy' : approach);
  if (!seemsLegacy) return openAsking(plan);
  try {
    return { opened: await start('legacy').opened, wantsInitialize: true };
  } catch (thrown) {
    // It was changed for one that speaks the later revision alone.
    if (!isRefusal(upstreamError(thrown, ''))) throw thrown;
    return { opened: await start('auto').opened, wantsInitialize: false };
  }
}

async function openAs<Opened>(
  { seemsLegacy, start }: OpeningPlan<Opened>,
  as: Approach,
  isPatient = false,
): Promise<Opening<Opened>> {
  return { opened: await start(as, isPatient).opened, wantsInitialize: seemsLegacy };
}

async function openAsking<Opened>(plan: OpeningPlan<Opened>): Promise<Opening<Opened>> {
  const { transport, hushMs, start } = plan;
  const asked = start('auto');
  const early = await outcomeOf(asked.opened, transport === 'stdio' ? hushMs : undefined);
  if (early && 'opened' in early) return { opened: early.opened, wantsInitialize: false };
  // One of the later revision alone that took its time to start: by now it has.
  if (early && asked.isHasty() && isRefusal(upstreamError(early.thrown, ''))) return openAs(plan, 'auto', true);
  if (early && !mayWantInitialize(transport, asked.isStarted(), early.thrown)) throw early.thrown;
  const plain = start('legacy');
  const ways = early ? [plain] : [asked, plain];
  try {
    const first = await Promise.any(ways.map(async (way) => ({ way, opened: await way.opened })));
    for (const way of ways) if (way !== first.way) way.close();
    return { opened: first.opened, wantsInitialize: first.way === plain };
  } catch (all) {
    const last = (all as AggregateError).errors.at(-1) as unknown;
    const wasSlow = !early || upstreamError(early.thrown, '').code === 'remote_timeout';
    if (wasSlow && isRefusal(upstreamError(last, ''))) {
      asked.close();
      return openAs(plan, 'auto', true);
    }
    throw early && isHttp(transport) && !wasSlow ? early.thrown : last;
  }
}

/** What comes of it; undefined when nothing did in time. */
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

/** Whether a server that failed at the first question may be one that bears none before `initialize`. */
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

/** A connection took too long to come about. */
export function tooSlow(): RialtoError {
  return new RialtoError('remote_timeout', { message: 'the MCP server did not answer in time' });
}
