import type { OrgId } from '../kernel/ids.js';
import type { SignatureCheck } from '../platform/secrets/signing-keys.js';
import type { AuditCheckpointStore, CheckpointCursor, Cut, StoredCheckpoint } from './audit-checkpoint.store.js';
import type { AuditEventStore } from './audit-event.store.js';
import type { Verification } from './audit.types.js';
import { genesisHash, walkChain, type ChainState } from './chain.js';
import { beforeFirst, checkpointHash, placeFault, statementBytes, statementOf } from './checkpoint.js';

/** Number of links in one batch. Hashing a batch blocks the event loop for one or two milliseconds. */
const batch = 200;

/** Reads the events of a chain: from the database, or from an export. */
export type ChainSource = Pick<AuditEventStore, 'linksAfter' | 'countUnsealed'>;

/** Reads checkpoints: from the database, or from an export. */
export type CheckpointSource = Pick<AuditCheckpointStore, 'findPage'>;

/** A contradiction in the chain: the first invalid event, and the reason. */
interface Fault {
  readonly brokenAt: number;
  readonly reason: string;
}

/** The part of a chain that one verification reads. */
export interface ChainRange {
  readonly org: OrgId;
  readonly upTo: number;
  readonly cut?: Cut;
}

/** One verification of one org, from its first event to the last and against every checkpoint. */
export class ChainWalk {
  private readonly org: OrgId;
  private readonly upTo: number;
  private readonly start: ChainState;
  private state: ChainState;
  private last: CheckpointCursor = { number: 0, sequence: -1, cut: false };
  private place;
  private unknown?: string;

  constructor(
    { org, upTo, cut }: ChainRange,
    private readonly events: ChainSource,
    private readonly checkpoints: CheckpointSource,
    private readonly check: SignatureCheck,
  ) {
    this.org = org;
    this.upTo = upTo;
    this.start = cut ?? { sequence: 0, hash: genesisHash };
    this.state = this.start;
    this.place = beforeFirst(cut?.removedTo ?? 0);
  }

  async verify(): Promise<Verification> {
    const { unsealed, orphans } = await this.events.countUnsealed(this.org);
    const fault = (await this.advance(this.upTo)) ?? (await this.againstCheckpoints()) ?? this.orphanFault(orphans);
    const { start, state } = this;
    const isEmpty = state.sequence === start.sequence;
    const verdict = fault ? 'changed' : this.unknown ? 'unverifiable' : 'intact';
    const reason = fault?.reason ?? this.unknown;
    return {
      valid: verdict === 'intact',
      verdict,
      eventCount: state.sequence - start.sequence,
      firstSequence: isEmpty ? null : start.sequence + 1,
      lastSequence: isEmpty ? null : state.sequence,
      brokenAt: fault?.brokenAt ?? null,
      unsealed,
      lastCheckpoint: this.last.number || null,
      ...(reason !== undefined && { reason }),
    };
  }

  /** Verifies the links up to a sequence, or up to the current end of the chain. */
  private async advance(to: number): Promise<Fault | undefined> {
    while (this.state.sequence < to) {
      const links = await this.events.linksAfter(this.org, this.state.sequence, batch);
      if (links.length === 0) return undefined;
      const next = walkChain(links, this.state);
      if ('brokenAt' in next) {
        const sound = walkChain(links.slice(0, next.brokenAt - this.state.sequence - 1), this.state);
        if (!('brokenAt' in sound)) this.state = sound;
        return { brokenAt: next.brokenAt, reason: 'an event was changed, removed or inserted' };
      }
      this.state = next;
    }
    return undefined;
  }

  private async againstCheckpoints(): Promise<Fault | undefined> {
    for (;;) {
      const points = await this.checkpoints.findPage(this.org, this.last, batch);
      if (points.length === 0) return undefined;
      for (const point of points) {
        const fault = (await this.signatureFault(point)) ?? this.orderFault(point) ?? (await this.chainFault(point));
        if (fault) return fault;
        const { sequence, cut = false } = point.plain;
        this.last = { number: point.numbered?.number ?? 0, sequence, cut };
        if (point.numbered && !cut && sequence >= this.upTo) return undefined;
      }
    }
  }

  private async signatureFault({ plain, plainSignature, kid, numbered }: StoredCheckpoint): Promise<Fault | undefined> {
    const signed = [
      ...(plainSignature === undefined ? [] : [[plain, plainSignature] as const]),
      ...(numbered ? [[statementOf(numbered), numbered.signature] as const] : []),
    ];
    for (const [statement, signature] of signed) {
      const answer = await this.check(statementBytes(statement), kid, signature);
      if (answer === 'invalid') return { brokenAt: plain.sequence, reason: 'a checkpoint was changed' };
      if (answer === 'unknown') this.unknown ??= `a checkpoint cannot be verified: the signing key ${kid} is missing`;
    }
    return undefined;
  }

  /** Checks that numbered checkpoints follow each other without a gap, each with the hash of the previous one. */
  private orderFault({ numbered }: StoredCheckpoint): Fault | undefined {
    if (!numbered) return undefined;
    const reason = placeFault(this.place, numbered);
    this.place = { number: numbered.number, hash: checkpointHash(numbered) };
    return reason === undefined ? undefined : { brokenAt: numbered.sequence, reason };
  }

  /** Checks that the chain has the signed hash. Events that retention dropped are not checked. */
  private async chainFault({ plain: { sequence, hash }, chainHash }: StoredCheckpoint): Promise<Fault | undefined> {
    if (sequence <= this.start.sequence) return undefined;
    if (chainHash !== undefined && chainHash !== hash)
      return { brokenAt: sequence, reason: 'the chain differs from a signed checkpoint' };
    if (sequence <= this.state.sequence) return undefined;
    // New events were sealed and signed since the end of the walk, or the end of the chain is missing.
    const fault = await this.advance(sequence);
    if (fault || sequence <= this.state.sequence) return fault;
    return { brokenAt: this.state.sequence + 1, reason: 'the chain ends before a signed checkpoint' };
  }

  private orphanFault(orphans: number): Fault | undefined {
    return orphans > 0 ? { brokenAt: this.state.sequence + 1, reason: 'an event is not part of the chain' } : undefined;
  }
}
