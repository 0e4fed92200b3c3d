import { z } from 'zod';
import type { OrgId } from '../../kernel/ids.js';
import { PublicKey } from '../audit.types.js';
import { AnchoredCheckpoint } from '../checkpoint.js';
import { OpenedFacts } from '../personal/personal-facts.js';

/** The first line of an export. */
export const ExportHeader = z.object({
  version: z.literal(1),
  orgId: z.uuid().transform((id) => id as OrgId),
  slug: z.string().nullable(),
  at: z.iso.datetime(),
  keys: z.array(PublicKey),
});
export type ExportHeader = z.output<typeof ExportHeader>;

/** An event with its place in the chain. `event` is null when its row is missing in the database. */
const ExportedEvent = z.object({
  sequence: z.int().min(1),
  prevHash: z.string(),
  hash: z.string(),
  event: z.looseObject({}).nullable(),
  /** The personal facts of `event.sealed` that are not erased. */
  opened: z.array(OpenedFacts).optional(),
});

/** A TimeStampToken (RFC 3161) of the line of a checkpoint: DER in Base64. */
const Timestamp = z.base64().max(100_000);

/**
 * A line of an export: the header, then the events and checkpoints of the org, each checkpoint after the event that
 * it covers, then the number of the lines before the end.
 */
export const ExportLine = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('audit'), data: ExportHeader }),
  z.object({ kind: z.literal('event'), data: ExportedEvent }),
  z.object({ kind: z.literal('checkpoint'), data: AnchoredCheckpoint, timestamp: Timestamp.optional() }),
  z.object({ kind: z.literal('end'), lines: z.int() }),
]);
export type ExportLine = z.output<typeof ExportLine>;

/** Returns a line of an export with its line end. */
export function exportLine(line: ExportLine): string {
  return `${JSON.stringify(line)}\n`;
}
