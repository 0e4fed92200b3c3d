import { createCipheriv, createDecipheriv, hash, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import { canonicalJson } from '../../kernel/canonical-json.js';
import { randomBlock } from '../../kernel/ids.js';
import { isJsonObject, storableText, type JsonObject } from '../../kernel/json.js';

const maxSubjectChars = 256;
const nonceBytes = 12;
const tagBytes = 16;

/** Facts about one subject, at the places where the event shows them, such as `{ principal: { id: 'bob' } }`. */
export interface PersonalFacts {
  readonly subject: string;
  readonly facts: JsonObject;
}

/** The key of a subject. Without it, its facts can never be read again. */
export interface SubjectKey {
  readonly id: string;
  readonly secret: KeyObject;
}

/** Facts as the event stores them. The chain hashes them in this form, so it verifies without the key. */
export const SealedFacts = z.object({
  /** Id of the key. It does not tell the subject. */
  key: z.string(),
  /** SHA-256 of the canonical JSON of salt and facts. It proves facts that are shown beside the event. */
  commitment: z.string(),
  /** AES-256-GCM of the same text: nonce, ciphertext and tag. */
  box: z.string(),
});
export type SealedFacts = z.output<typeof SealedFacts>;

/** Facts that were opened with their key. */
export const OpenedFacts = z.object({
  key: z.string(),
  salt: z.string(),
  facts: z.record(z.string(), z.unknown()).transform((facts) => facts as JsonObject),
});
export type OpenedFacts = z.output<typeof OpenedFacts>;

/** The event that facts belong to. A box that is moved to another event cannot be opened there. */
interface EventPlace {
  readonly orgId: string;
  readonly id: string;
}

/** Returns the subject of a caller, given as `kind:id` (`callerOf`). */
export function subjectOf(caller: string): string {
  const start = caller.indexOf(':') + 1;
  return caller.slice(0, start) + storableText(caller.slice(start), maxSubjectChars);
}

/** Seals facts. A salt makes it impossible to guess them from the commitment. */
export function sealFacts(place: EventPlace, { id: key, secret }: SubjectKey, facts: JsonObject): SealedFacts {
  const salt = randomBlock(16).toString('base64url');
  const text = canonicalJson({ salt, facts });
  const nonce = randomBlock(nonceBytes);
  const cipher = createCipheriv('aes-256-gcm', secret, nonce).setAAD(aad(place, key));
  const box = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return { key, commitment: hash('sha256', text, 'hex'), box: box.toString('base64url') };
}

/** Opens sealed facts; undefined when they were changed or moved. */
export function openFacts(place: EventPlace, { id, secret }: SubjectKey, sealed: SealedFacts): OpenedFacts | undefined {
  const box = Buffer.from(sealed.box, 'base64url');
  try {
    const decipher = createDecipheriv('aes-256-gcm', secret, box.subarray(0, nonceBytes)).setAAD(aad(place, id));
    decipher.setAuthTag(box.subarray(-tagBytes));
    const text = Buffer.concat([decipher.update(box.subarray(nonceBytes, -tagBytes)), decipher.final()]);
    return OpenedFacts.parse({ key: id, ...(JSON.parse(text.toString('utf8')) as object) });
  } catch {
    return undefined;
  }
}

/** Returns the sealed facts of an event; none for an event that was written before facts were sealed. */
export function sealedFactsOf(event: unknown): SealedFacts[] {
  const { sealed } = (event ?? {}) as { sealed?: unknown };
  return z.array(SealedFacts).safeParse(sealed).data ?? [];
}

/** Returns whether facts that are shown beside an event are those that it sealed. */
export function isOfEvent(event: unknown, { key, salt, facts }: OpenedFacts): boolean {
  const commitment = hash('sha256', canonicalJson({ salt, facts }), 'hex');
  return sealedFactsOf(event).some((sealed) => sealed.key === key && sealed.commitment === commitment);
}

/** Puts facts into an event, and returns it with the JSON pointers (RFC 6901) of the members that were added. */
export function withFacts<Event extends object>(
  event: Event,
  all: readonly JsonObject[],
): { event: Event; added: string[] } {
  const added: string[] = [];
  const merged = all.reduce<object>((target, facts) => merge(target, facts, '', added), event);
  return { event: merged as Event, added };
}

function merge(target: object, facts: JsonObject, path: string, added: string[]): object {
  const result: Record<string, unknown> = { ...target };
  for (const [name, value] of Object.entries(facts)) {
    const at = `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const present = result[name];
    if (isJsonObject(present) && isJsonObject(value)) result[name] = merge(present, value, at, added);
    else if (present === undefined) {
      result[name] = value;
      added.push(at);
    }
  }
  return result;
}

function aad({ orgId, id }: EventPlace, key: string): Buffer {
  return Buffer.from(`${orgId}\n${id}\n${key}`);
}
