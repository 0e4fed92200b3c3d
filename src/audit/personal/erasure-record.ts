import { z } from 'zod';
import { canonicalJson } from '../../kernel/canonical-json.js';
import type { SignatureCheck, Signer } from '../../platform/secrets/signing-keys.js';

const ErasureEvent = z.object({
  type: z.literal('audit.erased'),
  orgId: z.string(),
  keys: z.array(z.string()),
  kid: z.string(),
  signature: z.string(),
});

/** The keys that one erasure deleted, signed: the password of the database is not enough to invent an erasure. */
export type ErasureRecord = Readonly<Omit<z.output<typeof ErasureEvent>, 'type'>>;

export function signErasure(orgId: string, keys: readonly string[], { kid, sign }: Signer): ErasureRecord {
  return { orgId, keys: [...keys], kid, signature: sign(signedBytes(orgId, keys)) };
}

/** Reads the record of an erasure from its event; undefined for any other value. */
export function erasureIn(event: unknown): ErasureRecord | undefined {
  const { data } = ErasureEvent.safeParse(event);
  return data;
}

/** Returns the keys of the records that a known key signed. */
export async function erasedKeys(records: readonly ErasureRecord[], check: SignatureCheck): Promise<Set<string>> {
  const erased = new Set<string>();
  for (const { orgId, keys, kid, signature } of records)
    if ((await check(signedBytes(orgId, keys), kid, signature)) === 'valid') for (const key of keys) erased.add(key);
  return erased;
}

function signedBytes(orgId: string, keys: readonly string[]): Buffer {
  return Buffer.from(canonicalJson({ type: 'audit.erased', orgId, keys: [...keys] }));
}
