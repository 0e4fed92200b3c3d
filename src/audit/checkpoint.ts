import { hash } from 'node:crypto';
import { z } from 'zod';
import { canonicalJson } from '../kernel/canonical-json.js';
import type { Signer } from '../platform/secrets/signing-keys.js';
import { genesisHash } from './chain.js';

const Hash = z.string().regex(/^[0-9a-f]{64}$/);
const Count = z.int().min(0);

/** A signed statement about the end of an org's chain, as an anchor stores it: one JSON line. */
export const AnchoredCheckpoint = z.strictObject({
  orgId: z.uuid(),
  /** 1 for the first checkpoint of an org, and one more for each next one. */
  number: z.int().min(1),
  /** SHA-256 of the line of the previous checkpoint; zeros for the first. */
  prevHash: Hash,
  /** Sequence and hash of the last event that the checkpoint covers. */
  sequence: Count,
  hash: Hash,
  at: z.iso.datetime(),
  /** True for a cut: retention dropped the events up to `sequence` and the checkpoints up to number `removedTo`. */
  cut: z.literal(true).optional(),
  removedTo: Count.optional(),
  kid: z.string(),
  signature: z.string(),
});
export type AnchoredCheckpoint = z.output<typeof AnchoredCheckpoint>;

/** The content of a numbered checkpoint, without its signature. */
export type Statement = Omit<AnchoredCheckpoint, 'kid' | 'signature'>;

/** The content of a checkpoint in the previous version, which has neither number nor previous hash. */
export type PlainStatement = Pick<AnchoredCheckpoint, 'orgId' | 'sequence' | 'hash' | 'at' | 'cut'>;

/** Returns the bytes that are signed. */
export function statementBytes(statement: Statement | PlainStatement): Buffer {
  return Buffer.from(canonicalJson(statement));
}

/** Returns the part of a statement that the previous version signs and checks. */
function plainStatement({ orgId, sequence, hash: head, at, cut }: PlainStatement): PlainStatement {
  return { orgId, sequence, hash: head, at, ...(cut && { cut }) };
}

/** A statement with its signatures. `plainSignature` is for processes of the previous version. */
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

/** Returns the signed content of a checkpoint. */
export function statementOf({ kid: _kid, signature: _signature, ...statement }: AnchoredCheckpoint): Statement {
  return statement;
}

/** Returns a checkpoint as one line, without a line end. */
export function lineOf(checkpoint: AnchoredCheckpoint): string {
  return canonicalJson(checkpoint);
}

/** Returns the hash that the next checkpoint contains: SHA-256 of the line. */
export function checkpointHash(checkpoint: AnchoredCheckpoint): string {
  return hash('sha256', lineOf(checkpoint), 'hex');
}

/**
 * Position of a walk along the checkpoints of an org. `hash` is undefined when retention dropped the previous one.
 */
export interface CheckpointState {
  readonly number: number;
  readonly hash?: string;
}

/** Returns the state before the first checkpoint that must exist. */
export function beforeFirst(removedTo: number): CheckpointState {
  return removedTo === 0 ? { number: 0, hash: genesisHash } : { number: removedTo };
}

/** Returns what is wrong with the position of a checkpoint after the previous one; undefined when it is right. */
export function placeFault(before: CheckpointState, { number, prevHash }: AnchoredCheckpoint): string | undefined {
  if (number !== before.number + 1) return `checkpoint ${before.number + 1} was removed`;
  if (before.hash !== undefined && prevHash !== before.hash)
    return `checkpoint ${number} does not follow checkpoint ${before.number}`;
  return undefined;
}

/** Data of the database for an anchored checkpoint. */
export interface Held {
  readonly stored?: AnchoredCheckpoint;
  /** The hash of the chain at the sequence of the checkpoint. */
  readonly chainHash?: string;
  /** The events and checkpoints that retention dropped, from a signed cut. */
  readonly cut?: { readonly sequence: number; readonly removedTo: number };
}

/** How the database contradicts a checkpoint. */
export interface AnchorFault {
  readonly reason: string;
  /** The change of the event of the checkpoint; undefined when only the checkpoint itself is wrong. */
  readonly event?: 'removed' | 'changed';
  /** True when the database has another checkpoint with this number. */
  readonly isReplaced: boolean;
}

/**
 * Returns how the database contradicts a checkpoint of an anchor; undefined when it does not. The caller checks the
 * signature before.
 */
export function anchorFault(anchored: AnchoredCheckpoint, { stored, chainHash, cut }: Held): AnchorFault | undefined {
  const { number, sequence } = anchored;
  const isReplaced = stored !== undefined && lineOf(stored) !== lineOf(anchored);
  if (sequence > (cut?.sequence ?? 0)) {
    if (chainHash === undefined) return { reason: `event ${sequence} was removed`, event: 'removed', isReplaced };
    if (chainHash !== anchored.hash)
      return { reason: `event ${sequence}, or one before it, was changed`, event: 'changed', isReplaced };
  }
  if (isReplaced) return { reason: `checkpoint ${number} differs from the anchored one`, isReplaced };
  if (stored || number <= (cut?.removedTo ?? 0)) return undefined;
  return { reason: `checkpoint ${number} was removed`, isReplaced };
}
