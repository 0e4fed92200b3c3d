import type { OrgId } from '../kernel/ids.js';
import type { SignatureCheck } from '../platform/secrets/signing-keys.js';
import type { AuditCheckpointStore, CheckpointCursor, Cut, StoredCheckpoint } from './audit-checkpoint.store.js';
import type { AuditEventStore } from './audit-event.store.js';
import type { Verification } from './audit.types.js';
import { genesisHash, walkChain, type ChainLink, type ChainState } from './chain.js';
import { erasedKeys } from './personal/erasure-record.js';
import { beforeFirst, checkpointHash, placeFault, statementBytes, statementOf } from './checkpoint.js';

/** Number of links in one batch. Hashing a batch blocks the event loop for one or two milliseconds. */
const batch = 200;

/** Reads the events of a chain: from the database, or from an export. */
export type ChainSource = Pick<AuditEventStore, 'linksAfter' | 'countUnsealed' | 'lostKeys' | 'erasures'>;

/** Reads checkpoints: from the database, or from an export. */
export type CheckpointSource = Pick<AuditCheckpointStore, 'findPage'>;

/** A contradiction in the chain: the event that shows it, and the reason. */
interface Fault {
  readonly brokenAt: number;
  readonly reason: string;
  /** True when the change may be before `brokenAt`, after the last event that a checkpoint confirms. */
  readonly isAfterChange?: boolean;
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
  /** Last event that a signed checkpoint confirms, together with all events before it. */
  private confirmedTo: number;
  private place;
  private unknown?: string;
  /**
   * Keys that are missing or do not open their facts, each with the first event that it sealed facts of, in the order
   * of these events.
   */
  private readonly lost = new Map<string, number>();

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
    this.confirmedTo = this.start.sequence;
    this.place = beforeFirst(cut?.removedTo ?? 0);
  }

  async verify(): Promise<Verification> {
    const { unsealed, orphans } = await this.events.countUnsealed(this.org);
    const ofLinks = await this.advance(this.upTo);
    const fault = this.firstOf(
      ofLinks,
      await this.againstCheckpoints(ofLinks !== undefined),
      this.orphanFault(orphans),
    );
    if (!fault) this.unknown ??= await this.lostFacts();
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
        return linkFault(next);
      }
      this.state = next;
      await this.noteLostKeys(links);
    }
    return undefined;
  }

  /** Only a whole chain has all erasures, so the start of one is not asked for keys. */
  private async noteLostKeys(links: readonly ChainLink[]): Promise<void> {
    if (this.upTo !== Infinity) return;
    for (const [key, sequence] of await this.events.lostKeys(this.org, links))
      if (!this.lost.has(key)) this.lost.set(key, sequence);
  }

  /** Returns the first facts that cannot be read although no signed event records the erasure of their key. */
  private async lostFacts(): Promise<string | undefined> {
    if (this.lost.size === 0) return undefined;
    const erased = await erasedKeys(await this.events.erasures(this.org, [...this.lost.keys()]), this.check);
    const first = [...this.lost].find(([key]) => !erased.has(key));
    return (
      first &&
      `the key of personal facts of event ${first[1]} is missing or changed, and no signed event records its erasure`
    );
  }

  /**
   * Compares the chain with its checkpoints, also after a fault, because a later one may confirm the events. Stops
   * where the links end in a fault. Returns the first fault.
   */
  private async againstCheckpoints(isBroken: boolean): Promise<Fault | undefined> {
    let first: Fault | undefined;
    for (;;) {
      const points = await this.checkpoints.findPage(this.org, this.last, batch);
      if (points.length === 0) return first;
      for (const point of points) {
        if (isBroken && point.plain.sequence > this.state.sequence) return first;
        const answer = await this.checkSignatures(point);
        const order = this.orderFault(point);
        const chain = await this.chainFault(point, first === undefined);
        first ??= answer === 'invalid' ? changedCheckpoint(point) : (order ?? chain);
        if (answer === 'valid' && this.isConfirmed(point)) this.confirmedTo = point.plain.sequence;
        const { sequence, cut = false } = point.plain;
        this.last = { number: point.numbered?.number ?? 0, sequence, cut };
        if (point.numbered && !cut && sequence >= this.upTo) return first;
      }
    }
  }

  private async checkSignatures({ plain, plainSignature, kid, numbered }: StoredCheckpoint) {
    const signed = [
      ...(plainSignature === undefined ? [] : [[plain, plainSignature] as const]),
      ...(numbered ? [[statementOf(numbered), numbered.signature] as const] : []),
    ];
    let isKnown = true;
    for (const [statement, signature] of signed) {
      const answer = await this.check(statementBytes(statement), kid, signature);
      if (answer === 'invalid') return answer;
      if (answer === 'valid') continue;
      isKnown = false;
      this.unknown ??= `a checkpoint cannot be verified: the signing key ${kid} is missing`;
    }
    return isKnown ? 'valid' : 'unknown';
  }

  /** Returns whether the chain is sound up to the event of a checkpoint, and has the same hash there. */
  private isConfirmed({ plain: { sequence, hash }, chainHash }: StoredCheckpoint): boolean {
    const isWalked = sequence > this.confirmedTo && sequence <= this.state.sequence;
    return isWalked && hash === (sequence === this.state.sequence ? this.state.hash : chainHash);
  }

  /** Checks that numbered checkpoints follow each other without a gap, each with the hash of the previous one. */
  private orderFault({ numbered }: StoredCheckpoint): Fault | undefined {
    if (!numbered) return undefined;
    const reason = placeFault(this.place, numbered);
    this.place = { number: numbered.number, hash: checkpointHash(numbered) };
    return reason === undefined ? undefined : changedAt(numbered.sequence, reason);
  }

  /** Checks that the chain has the signed hash. Events that retention dropped are not checked. */
  private async chainFault(
    { plain: { sequence, hash }, chainHash }: StoredCheckpoint,
    mayAdvance: boolean,
  ): Promise<Fault | undefined> {
    if (sequence <= this.start.sequence) return undefined;
    if (chainHash !== undefined && chainHash !== hash)
      return changedAt(sequence, `event ${sequence}, or one before it, was changed`);
    if (sequence <= this.state.sequence || !mayAdvance) return undefined;
    // New events were sealed and signed since the end of the walk, or the end of the chain is missing.
    const fault = await this.advance(sequence);
    if (fault || sequence <= this.state.sequence) return fault;
    return { brokenAt: this.state.sequence + 1, reason: 'the chain ends before a signed checkpoint' };
  }

  private orphanFault(orphans: number): Fault | undefined {
    return orphans > 0 ? { brokenAt: this.state.sequence + 1, reason: 'an event is not part of the chain' } : undefined;
  }

  /** Returns the fault that comes first in the chain, of several at one event the first of the list. */
  private firstOf(...faults: readonly (Fault | undefined)[]): Fault | undefined {
    const placed = faults.flatMap((fault) => (fault ? [this.placed(fault)] : []));
    return placed.reduce<Fault | undefined>(
      (first, fault) => (first && first.brokenAt <= fault.brokenAt ? first : fault),
      undefined,
    );
  }

  private placed(fault: Fault): Fault {
    return fault.isAfterChange ? { ...fault, brokenAt: Math.min(fault.brokenAt, this.confirmedTo + 1) } : fault;
  }
}

/** Returns the fault of a link. A sound event after another hash shows that an event before it was changed. */
function linkFault({ brokenAt, isSound }: { brokenAt: number; isSound: boolean }): Fault {
  const reason = 'was changed, removed or inserted';
  return isSound
    ? changedAt(brokenAt, `event ${brokenAt}, or one before it, ${reason}`)
    : { brokenAt, reason: `event ${brokenAt} ${reason}` };
}

function changedCheckpoint({ plain: { sequence } }: StoredCheckpoint): Fault {
  return changedAt(sequence, `the checkpoint of event ${sequence} was changed`);
}

function changedAt(brokenAt: number, reason: string): Fault {
  return { brokenAt, reason, isAfterChange: true };
}
