import { Strategy } from 'passport-jwt';

/** Verifies a token. Rejects with the reason when it is refused. */
type Verify<Verified> = (token: string) => Promise<Verified>;
type Done = (error: unknown, payload?: unknown) => void;

// passport-jwt has no option for the verifier, and its own one verifies with jsonwebtoken. Its undeclared static member
// is replaced by a verifier that gets ours in place of the key.
// Missing public API: an option of the strategy for the function that verifies a token.
// Canary test: `passport-jwt.spec.ts`.
(Strategy as unknown as { JwtVerifier: unknown }).JwtVerifier = (
  token: string,
  verify: Verify<unknown>,
  _options: unknown,
  done: Done,
): void => {
  verify(token).then(
    (verified) => done(null, verified),
    (error: unknown) => done(error),
  );
};

/** Runs the passport strategy `jwt` once for the token of a request. Rejects with the error of the verifier. */
export function runJwtStrategy<Verified>(request: object, token: string, verify: Verify<Verified>): Promise<Verified> {
  return new Promise((resolve, reject) => {
    const strategy = new Strategy(
      {
        jwtFromRequest: () => token,
        secretOrKeyProvider: (_request: unknown, _token: unknown, done: Done) => done(null, verify),
      } as never,
      (payload: unknown, done: (error: unknown, user: unknown) => void) => done(null, payload),
    );
    const outcome = strategy as unknown as Record<'success' | 'fail' | 'error', (value: never) => void>;
    outcome.success = (verified: Verified) => resolve(verified);
    outcome.fail = reject;
    outcome.error = reject;
    strategy.authenticate(request as never);
  });
}
