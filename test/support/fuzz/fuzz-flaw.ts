import { inspect } from 'node:util';
import { A2AClientError } from '../../../src/a2a-client/client.js';
import { RialtoError } from '../../../src/kernel/errors.js';

/** Number of cases. `RIALTO_FUZZ_CASES=20000` makes a long run; the same seed gives the same cases. */
export const cases = Number(process.env.RIALTO_FUZZ_CASES ?? 200);
export const seed = Number(process.env.RIALTO_FUZZ_SEED ?? 20_261_126);
/** Timeout of one call in milliseconds, also for an answer that never ends. */
export const timeoutMs = 250;
/** Milliseconds for a correct answer on a busy machine. A call that takes longer counts as one that never ends. */
export const amplyMs = 30_000;
export const patience = 60_000 + cases * 60;

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

/** Fails a test after which a rejection is unhandled. */
export function noUnhandledRejections(): void {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  beforeAll(() => void process.on('unhandledRejection', note));
  afterAll(() => void process.off('unhandledRejection', note));
  afterEach(() => expect(unhandled.splice(0)).toEqual([]));
}
