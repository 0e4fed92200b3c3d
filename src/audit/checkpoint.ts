import { hash } from 'node:crypto';
import { z } from 'zod';
import { canonicalJson } from '../kernel/canonical-json.js';
import type { Signer } from '../platform/secrets/signing-keys.js';
import { genesisHash } from './chain.js';

const Hash = z.string().regex(/^[0-9a-f]{64}$/);
const Count = z.int().min(0);

/** A signed statement of how far the chain of an org reaches, as an anchor keeps it: one JSON line. */
export const AnchoredCheckpoint = z.strictObject({
  orgId: z.uuid(),
  /** 1 for the first checkpoint of an org, one more for each that follows. */
  number: z.int().min(1),
  /** SHA-256 of the line of the checkpoint before; zeros for the first. */
  prevHash: Hash,
  /** Sequence and hash of the event that the chain had reached. */
  sequence: Count,
  hash: Hash,
  at: z.iso.datetime(),
  /** Retention dropped the events up to `sequence`, and the checkpoints up to the number `removedTo`. */
  cut: z.literal(true).optional(),
  removedTo: Count.optional(),
  kid: z.string(),
  signature: z.string(),
});
export type AnchoredCheckpoint = z.output<typeof AnchoredCheckpoint>;

/** What a numbered checkpoint states, before it is signed. */
export type Statement = Omit<AnchoredCheckpoint, 'kid' | 'signature'>;

/** A checkpoint of the version before, which has neither number nor predecessor. */
export type PlainStatement = Pick<AnchoredCheckpoint, 'orgId' | 'sequence' | 'hash' | 'at' | 'cut'>;

/** The bytes that are signed. */
export function statementBytes(statement: Statement | PlainStatement): Buffer {
  return Buffer.from(canonicalJson(statement));
}

/** The part of a statement that the version before signs and checks. */
function plainStatement({ orgId, sequence, hash: head, at, cut }: PlainStatement): PlainStatement {
  return { orgId, sequence, hash: head, at, ...(cut && { cut }) };
}

/** A statement with its signatures, of which the plain one is for processes of the version before. */
export interface Signed {
  readonly statement: Statement;
  readonly kid: string;
  readonly signature: string;
  readonly plainSignature: string;
}

/** Signs a statement. */
export function signed(statement: Statement, { kid, sign }: Signer): Signed {
  return {
    statement,
    kid,
    signature: sign(statementBytes(statement)),
    plainSignature: sign(statementBytes(plainStatement(statement))),
  };
}

/** What of a checkpoint was signed. */
export function statementOf({ kid: _kid, signature: _signature, ...statement }: AnchoredCheckpoint): Statement {
  return statement;
}

/** A checkpoint as one line, without its end. */
export function lineOf(checkpoint: AnchoredCheckpoint): string {
  return canonicalJson(checkpoint);
}

/** The hash that the next checkpoint names: SHA-256 of the line. */
export function checkpointHash(checkpoint: AnchoredCheckpoint): string {
  return hash('sha256', lineOf(checkpoint), 'hex');
}

/** Where a walk along the checkpoints of an org stands; no hash when retention dropped the one before. */
export interface CheckpointState {
  readonly number: number;
  readonly hash?: string;
}

/** The state before the first checkpoint that has to be there. */
export function beforeFirst(removedTo: number): CheckpointState {
  return removedTo === 0 ? { number: 0, hash: genesisHash } : { number: removedTo };
}

/** Says what is wrong with the place of a checkpoint behind the one before. */
export function placeFault(before: CheckpointState, { number, prevHash }: AnchoredCheckpoint): string | undefined {
  if (number !== before.number + 1) return `checkpoint ${before.number + 1} was removed`;
  if (before.hash !== undefined && prevHash !== before.hash)
    return `checkpoint ${number} does not follow checkpoint ${before.number}`;
  return undefined;
}

/** What a database holds in the place of an anchored checkpoint. */
export interface Held {
  readonly stored?: AnchoredCheckpoint;
  /** The hash of the chain at the sequence of the checkpoint. */
  readonly chainHash?: string;
  /** What retention says, under a signature, that it dropped. */
  readonly cut?: { readonly sequence: number; readonly removedTo: number };
}

/** Says how a database contradicts a checkpoint that an anchor kept. The signature of the checkpoint is checked before. */
export function anchorFault(anchored: AnchoredCheckpoint, { stored, chainHash, cut }: Held): string | undefined {
  const { number, sequence } = anchored;
  if (sequence > (cut?.sequence ?? 0)) {
    if (chainHash === undefined) return `event ${sequence} was removed`;
    if (chainHash !== anchored.hash) return `event ${sequence}, or one before it, was changed`;
  }
  if (stored) return lineOf(stored) === lineOf(anchored) ? undefined : `checkpoint ${number} is another one`;
  return number > (cut?.removedTo ?? 0) ? `checkpoint ${number} was removed` : undefined;
}
