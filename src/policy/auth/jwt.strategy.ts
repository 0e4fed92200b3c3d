import { Strategy } from 'passport-jwt';
import { bearerOf } from './bearer.js';
import type { VerifiedToken } from './token-verifier.js';

/** Verifies a token. Rejects with the reason when it is refused. */
type Verify = (token: string) => Promise<VerifiedToken>;
type Done = (error: unknown, payload?: unknown) => void;

// passport-jwt runs the strategy. Its verifier on jsonwebtoken is replaced by ours on jose, which is passed in place
// of the key.
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

/** Runs the passport strategy `jwt` once for a request. Rejects with the error of the verifier. */
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
