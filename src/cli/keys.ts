import { RotateSecret } from '../policy/auth/org.types.js';
import { CommandError, note, print, type Env } from './io.js';
import { asOperator } from './operator.js';

export interface RotateOptions {
  readonly org?: string;
  readonly signing?: boolean;
  readonly grace: string;
}

/** Makes a new secret for the tokens of an org and prints it, or a new key that signs cards and prints its id. */
export async function rotateKeys(env: Env, { org, signing, grace }: RotateOptions): Promise<void> {
  const parsed = RotateSecret.safeParse({ graceSeconds: /^\d+$/.test(grace) ? Number(grace) : NaN });
  if (!parsed.success) throw new CommandError(`--grace ${grace}: give whole seconds, at most 604800`);
  const { graceSeconds } = parsed.data;
  if (signing ? org !== undefined : org === undefined) throw new CommandError('give --org, or --signing, and not both');
  if (org === undefined) {
    print(await asOperator(env, (operator) => operator.rotateSigningKey(graceSeconds)));
    note(`cards are signed anew; the key before stays in the JWKS for ${graceSeconds} s more`);
    return;
  }
  print(await asOperator(env, (operator) => operator.rotateSecret(org, graceSeconds)));
  note(`this secret is shown once; tokens under the one before are accepted for ${graceSeconds} s more`);
}
