import { RotateSecret } from '../policy/auth/org.types.js';
import { CommandError, note, print, type Env } from './io.js';
import { asOperator } from './operator.js';

/** Makes a new secret for the HS256 tokens of an org and prints it, the only time it is shown. */
export async function rotateKeys(env: Env, { org, grace }: { org: string; grace: string }): Promise<void> {
  const parsed = RotateSecret.safeParse({ graceSeconds: /^\d+$/.test(grace) ? Number(grace) : NaN });
  if (!parsed.success) throw new CommandError(`--grace ${grace}: give whole seconds, at most 604800`);
  const { graceSeconds } = parsed.data;
  print(await asOperator(env, (operator) => operator.rotateSecret(org, graceSeconds)));
  note(`this secret is shown once; tokens under the one before are accepted for ${graceSeconds} s more`);
}
