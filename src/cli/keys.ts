import { RotateSecret } from '../policy/org.types.js';
import { CommandError, note, print, type Env } from './io.js';
import { asOperator } from './operator.js';

export interface RotateOptions {
  readonly org?: string;
  readonly signing?: boolean;
  readonly encryption?: boolean;
  readonly grace: string;
}

/**
 * Creates a new secret for the tokens of an org and prints it; or creates a new key that signs cards and prints its
 * id; or seals all stored secrets with the current encryption key.
 */
export async function rotateKeys(env: Env, { org, signing, encryption, grace }: RotateOptions): Promise<void> {
  if ([org, signing, encryption].filter((one) => one !== undefined).length !== 1)
    throw new CommandError('give one of --org, --signing and --encryption');
  if (encryption) return rotateEncryption(env);
  const parsed = RotateSecret.safeParse({ graceSeconds: /^\d+$/.test(grace) ? Number(grace) : NaN });
  if (!parsed.success) throw new CommandError(`--grace ${grace}: give whole seconds, at most 604800`);
  const { graceSeconds } = parsed.data;
  if (org === undefined) {
    print(await asOperator(env, (operator) => operator.rotateSigningKey(graceSeconds)));
    note(`cards are signed with the new key; the previous key stays in the JWKS for ${graceSeconds} s more`);
    return;
  }
  print(await asOperator(env, (operator) => operator.tokens.rotateTokenSecret(org, graceSeconds)));
  note(`this secret is shown once; tokens signed with the previous one are accepted for ${graceSeconds} s more`);
}

async function rotateEncryption(env: Env): Promise<void> {
  const { resealed, unopened } = await asOperator(env, (operator, settings) => {
    if (!settings.otherEncryptionKey)
      throw new CommandError('RIALTO_ENCRYPTION_KEY_OTHER is not set: give the previous key in it');
    return operator.rotateEncryption();
  });
  print(`${resealed} secrets were sealed with RIALTO_ENCRYPTION_KEY`);
  const left = Object.entries(unopened).map(([table, count]) => `${count} of ${table}`);
  if (left.length > 0) throw new CommandError(`neither key opens ${left.join(', ')}; they stay as they are`);
  note(
    'remove RIALTO_ENCRYPTION_KEY_OTHER when no running process uses this key as its RIALTO_ENCRYPTION_KEY any more',
  );
}
