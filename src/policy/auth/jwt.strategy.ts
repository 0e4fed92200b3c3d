import { Strategy } from 'passport-jwt';
import { bearerOf } from './bearer.js';
import type { VerifiedToken } from './token-verifier.js';

/** Verifies a token; rejects with why it is refused. */
type Verify = (token: string) => Promise<VerifiedToken>;
type Done = (error: unknown, payload?: unknown) => void;

// passport-jwt drives the strategy; its verifier on jsonwebtoken is replaced by ours on jose, handed over in place of a key.
(Strategy as unknown as { JwtVerifier: unknown }).JwtVerifier = (
  token: string,
  verify: Verify,
  _options: unknown,
  done: Done,
): void => {
  verify(token).then(
    (verified) => done(null, verified),
    (error: unknown) => done(error),
  );
};

/** Runs the passport strategy `jwt` once over a request. Rejects with what the verifier threw. */
export function runJwtStrategy(request: Parameters<typeof bearerOf>[0], verify: Verify): Promise<VerifiedToken> {
  return new Promise((resolve, reject) => {
    const strategy = new Strategy(
      {
        jwtFromRequest: () => bearerOf(request) ?? null,
        secretOrKeyProvider: (_request: unknown, _token: unknown, done: Done) => done(null, verify),
      } as never,
      (payload: unknown, done: (error: unknown, user: unknown) => void) => done(null, payload),
    );
    const outcome = strategy as unknown as Record<'success' | 'fail' | 'error', (value: never) => void>;
    outcome.success = (verified: VerifiedToken) => resolve(verified);
    outcome.fail = reject;
    outcome.error = reject;
    strategy.authenticate(request as never);
  });
}
