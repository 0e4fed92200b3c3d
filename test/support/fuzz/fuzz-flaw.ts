import { setTimeout as wait } from 'node:timers/promises';
import { inspect } from 'node:util';
import { A2AClientError } from '../../../src/a2a-client/client.js';
import { RialtoError } from '../../../src/kernel/errors.js';
import type { UpstreamConnection } from '../../../src/upstreams/connections/upstream-connection.js';

/** Number of cases. `RIALTO_FUZZ_CASES=20000` makes a long run; the same seed gives the same cases. */
export const cases = Number(process.env.RIALTO_FUZZ_CASES ?? 200);
export const seed = Number(process.env.RIALTO_FUZZ_SEED ?? 20_261_126);
/** Timeout of one call in milliseconds, also for an answer that never ends. */
export const timeoutMs = 250;
/** Milliseconds for a correct answer on a busy machine. A call that takes longer counts as one that never ends. */
export const amplyMs = 30_000;
/** Milliseconds for all cases on a busy machine. */
export const patience = 60_000 + cases * 300;

/** Error codes allowed for a call to a peer with arbitrary answers. */
const codes =
  /^(remote_\w+|a2a_\w+|empty_agent_response|unauthenticated|url_not_allowed|unavailable|invalid_params|auth_expired)$/;

/** Returns undefined when the work succeeds or fails with a known fault of the peer; else it returns the flaw. */
export async function flawOf(work: () => Promise<unknown>): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const hung = new Promise(
    (resolve) => (timer = setTimeout(() => resolve(new Error('the call does not end')), amplyMs)),
  );
  const ended = work().then(
    () => undefined,
    (error: unknown) => error ?? new Error('the call failed without an error value'),
  );
  const thrown = await Promise.race([ended, hung]).finally(() => clearTimeout(timer));
  if (thrown === undefined) return undefined;
  if (!(thrown instanceof A2AClientError) && !(thrown instanceof RialtoError)) return `it threw ${inspect(thrown)}`;
  if (!codes.test(thrown.code)) return `${thrown.code}: ${thrown.message} (${String(thrown.cause)})`;
  return thrown.message.trim() === '' ? `${thrown.code} without a reason` : undefined;
}

/**
 * Calls a peer that gives correct answers again, until a call succeeds. Throws the last error after `amplyMs`.
 */
export async function recovered(call: () => Promise<unknown>): Promise<void> {
  const until = Date.now() + amplyMs;
  for (;;) {
    const failure = await call().then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
    if (!failure) return;
    if (Date.now() > until) throw failure.error;
    await wait(100);
  }
}

/** Sets how long a connection may take to open; a busy machine needs longer than `timeoutMs`. */
export function setConnectMs(connection: UpstreamConnection, connectMs: number): void {
  const { times } = connection as unknown as { times: object };
  Object.assign(times, { connectMs });
}

/** Fails a test after which a rejection is unhandled. */
export function noUnhandledRejections(): void {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  beforeAll(() => void process.on('unhandledRejection', note));
  afterAll(() => void process.off('unhandledRejection', note));
  afterEach(() => expect(unhandled.splice(0)).toEqual([]));
}
