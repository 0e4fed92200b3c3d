import { readFileSync } from 'node:fs';
import { z } from 'zod';

const text = z.string().min(1);
const hosts = z.array(text.transform((host) => host.toLowerCase())).min(1);
const base = { kid: text, alg: text.optional(), use: z.literal('sig').optional(), hosts: hosts.optional() };
const key = z.discriminatedUnion('kty', [
  z.looseObject({ ...base, kty: z.literal('OKP'), crv: text, x: text }),
  z.looseObject({ ...base, kty: z.literal('EC'), crv: text, x: text, y: text }),
  z.looseObject({ ...base, kty: z.literal('RSA'), n: text, e: text }),
]);
const keySet = z.looseObject({ keys: z.array(key.refine((one) => !('d' in one), { message: 'is a private key' })) });

/**
 * A public key that the operator trusts for signatures of agent cards: a JWK (RFC 7517). With `hosts` it is trusted
 * only for those.
 */
export type OperatorKey = z.output<typeof key>;

/** Reads RIALTO_CARD_KEYS: a JWKS, or the name of a file that contains one. Problems never repeat the value. */
export function readCardKeys(value: string | undefined, problems: string[]): readonly OperatorKey[] {
  if (value === undefined) return [];
  const read = keySet.safeParse(keyContent(value));
  if (read.success) return read.data.keys;
  const { path, message } = read.error.issues[0]!;
  const where =
    path.length > 0 ? `${path.join('.')}: ${message}` : 'it is neither JSON nor the name of a readable file';
  problems.push(`RIALTO_CARD_KEYS must be a JWKS of public keys, or the name of a file with one: ${where}`);
  return [];
}

function keyContent(value: string): unknown {
  try {
    return JSON.parse(value.trimStart().startsWith('{') ? value : readFileSync(value, 'utf8'));
  } catch {
    return undefined;
  }
}
