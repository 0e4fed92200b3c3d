import { inspect } from 'node:util';
import { A2AClientError } from '../../../src/a2a-client/client.js';
import { RialtoError } from '../../../src/kernel/errors.js';

/** `RIALTO_FUZZ_CASES=20000` for a long run; the same seed makes the same cases. */
export const cases = Number(process.env.RIALTO_FUZZ_CASES ?? 200);
export const seed = Number(process.env.RIALTO_FUZZ_SEED ?? 20_261_126);
/** Of one call; what an answer that never ends may take. */
export const timeoutMs = 250;
/** Of one that is answered as it should be, beside other work; and when one that has not ended is taken for one that never does. */
export const amplyMs = 30_000;
export const patience = 60_000 + cases * 60;

/** How a call of a peer may end that answers whatever it likes. */
const codes =
  /^(remote_\w+|a2a_\w+|empty_agent_response|unauthenticated|url_not_allowed|unavailable|invalid_params|auth_expired)$/;

/** Undefined for a result or a fault of the peer that is named; else what is wrong. */
export async function flawOf(work: () => Promise<unknown>): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const hung = new Promise((resolve) => (timer = setTimeout(() => resolve(new Error('it does not end')), amplyMs)));
  const ended = work().then(
    () => undefined,
    (error: unknown) => error ?? new Error('nothing was thrown'),
  );
  const thrown = await Promise.race([ended, hung]).finally(() => clearTimeout(timer));
  if (thrown === undefined) return undefined;
  if (!(thrown instanceof A2AClientError) && !(thrown instanceof RialtoError)) return `it threw ${inspect(thrown)}`;
  if (!codes.test(thrown.code)) return `${thrown.code}: ${thrown.message} (${String(thrown.cause)})`;
  return thrown.message.trim() === '' ? `${thrown.code} without a reason` : undefined;
}

/** Fails the test whose calls leave a rejection that nobody handles. */
export function noUnhandledRejections(): void {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  beforeAll(() => void process.on('unhandledRejection', note));
  afterAll(() => void process.off('unhandledRejection', note));
  afterEach(() => expect(unhandled.splice(0)).toEqual([]));
}
