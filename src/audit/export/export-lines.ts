import { z } from 'zod';
import { canonicalJson } from '../../kernel/canonical-json.js';
import type { OrgId } from '../../kernel/ids.js';
import { PublicKey } from '../audit.types.js';
import { AnchoredCheckpoint } from '../checkpoint.js';
import { OpenedFacts } from '../personal/personal-facts.js';

/** The first line of an export. */
export const ExportHeader = z.strictObject({
  version: z.literal(1),
  orgId: z.uuid().transform((id) => id as OrgId),
  slug: z.string().nullable(),
  at: z.iso.datetime(),
  keys: z.array(PublicKey),
});
export type ExportHeader = z.output<typeof ExportHeader>;

/** An event with its place in the chain. `event` is null when its row is missing in the database. */
const ExportedEvent = z.strictObject({
  sequence: z.int().min(1),
  prevHash: z.string(),
  hash: z.string(),
  event: z.looseObject({}).nullable(),
  /** The personal facts of `event.sealed` that are not erased. */
  opened: z.array(z.strictObject(OpenedFacts.shape)).optional(),
});

/** The signed end of an export, which makes a shorter file detectable. */
export const ExportEnd = z.strictObject({
  /** These three are those of the header. */
  orgId: z.uuid(),
  slug: z.string().nullable(),
  at: z.iso.datetime(),
  /** Sequence of the last event and number of the last checkpoint in the file; 0 without one. */
  sequence: z.int().min(0),
  number: z.int().min(0),
  kid: z.string(),
  signature: z.string(),
});
export type ExportEnd = z.output<typeof ExportEnd>;

/** Returns the bytes of an end that are signed. `kind` makes them differ from those of a checkpoint. */
export function endBytes({ orgId, slug, at, sequence, number }: Omit<ExportEnd, 'kid' | 'signature'>): Buffer {
  return Buffer.from(canonicalJson({ kind: 'audit.end', orgId, slug, at, sequence, number }));
}

/** A TimeStampToken (RFC 3161) of the line of a checkpoint: DER in Base64. */
const Timestamp = z.base64().max(100_000);

/**
 * A line of an export: the header, then the events and checkpoints of the org, each checkpoint after the event that
 * it covers, then the number of the lines before the end, and the signed end. Members that the schema does not name
 * are refused, because nothing signs them.
 */
export const ExportLine = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('audit'), data: ExportHeader }),
  z.strictObject({ kind: z.literal('event'), data: ExportedEvent }),
  z.strictObject({ kind: z.literal('checkpoint'), data: AnchoredCheckpoint, timestamp: Timestamp.optional() }),
  z.strictObject({ kind: z.literal('end'), lines: z.int(), data: ExportEnd.optional() }),
]);
export type ExportLine = z.output<typeof ExportLine>;

/** Returns a line of an export with its line end. */
export function exportLine(line: ExportLine): string {
  return `${JSON.stringify(line)}\n`;
}

/** A string in JSON. The closing quote may be missing, because the search would else begin again at each quote. */
const jsonString = /"(?:[^"\\]|\\.)*"?/gs;

/**
 * Returns whether an object in a JSON text has two members with one name. The parsed value then has fewer members
 * than the text has colons outside of strings.
 */
export function hasRepeatedMember(text: string, value: unknown): boolean {
  return text.replaceAll(jsonString, '').split(':').length - 1 !== countMembers(value);
}

function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce<number>((sum, one) => sum + countMembers(one), own);
}
