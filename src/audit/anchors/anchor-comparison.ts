import type { OrgId } from '../../kernel/ids.js';
import type { SignatureCheck } from '../../platform/secrets/signing-keys.js';
import type { AuditCheckpointStore, Cut } from '../audit-checkpoint.store.js';
import { AnchoredCheckpoint, anchorFault, statementBytes, statementOf, type AnchorFault } from '../checkpoint.js';

const batch = 500;
/** Number of unusable checkpoints that are listed; all of them are counted. */
const mostShown = 20;

/** Result of the comparison for one org. */
export interface AnchoredOrg {
  /** Number of compared checkpoints with a valid signature. A repeated line counts each time. */
  checked: number;
  /** Number of checkpoints that are newer than the export, so that it cannot have them. */
  newer: number;
  /** Number of the newest checkpoint; `lastAt` is its time. */
  lastNumber: number;
  lastAt: string;
  /** First contradiction between the database and the checkpoints, and the number of contradicted checkpoints. */
  reason?: string;
  contradicted: number;
  /** Last event that a checkpoint confirms. Its hash is the anchored one, and so is that of every event before it. */
  confirmedTo: number;
  /**
   * First event that may be wrong: the first one that no checkpoint confirms, or that of a wrong checkpoint when every
   * event is confirmed. Undefined without a contradiction.
   */
  brokenAt?: number;
  /** True when only the end of the chain is missing: no hash and no checkpoint was replaced. */
  isCutOff: boolean;
}

/** The result for an org while lines are read. */
interface Tally extends AnchoredOrg {
  /** Lowest sequence of a checkpoint with a missing or changed event, and of a wrong checkpoint. */
  readonly lowest: { event: number; checkpoint: number };
}

/** Result of a comparison. */
export interface Comparison {
  readonly orgs: ReadonlyMap<OrgId, AnchoredOrg>;
  /** Checkpoints that prove nothing: the signature is wrong, or this deployment does not have the key. */
  readonly unusable: { count: number; shown: string[] };
  /**
   * Number of lines that are not a checkpoint, for example one that was cut off by a full disk and then written
   * again.
   */
  readonly unreadable: number;
}

/** Reads what the checkpoints of an anchor are compared with: from the database, or from an export. */
export type ComparedCheckpoints = Pick<AuditCheckpointStore, 'findNumbered' | 'chainHashes' | 'newestCut'> & {
  /** Last checkpoint and time of an export; undefined for the database. */
  readonly end?: { readonly number: number; readonly at: string };
};

interface Line {
  readonly at: number;
  readonly checkpoint: AnchoredCheckpoint;
}

/** Compares the audit with the checkpoints of an anchor outside the database. Changes nothing. */
export class AnchorComparison {
  private readonly orgs = new Map<OrgId, Tally>();
  private readonly unusable = { count: 0, shown: [] as string[] };
  private unreadable = 0;

  constructor(
    private readonly checkpoints: ComparedCheckpoints,
    private readonly check: SignatureCheck,
  ) {}

  /**
   * Reads JSON lines in any order and compares them; with `only`, those of one org. Throws `unavailable` when this
   * process can open no signing key.
   */
  async compareLines(lines: AsyncIterable<string>, only?: OrgId): Promise<Comparison> {
    let pending: Line[] = [];
    let at = 0;
    for await (const text of lines) {
      at++;
      const checkpoint = await this.usable(text, at, only);
      if (checkpoint) pending.push({ at, checkpoint });
      if (pending.length < batch) continue;
      await this.compareBatch(pending);
      pending = [];
    }
    await this.compareBatch(pending);
    const orgs = new Map([...this.orgs].map(([org, tally]) => [org, resultOf(tally)]));
    return { orgs, unusable: this.unusable, unreadable: this.unreadable };
  }

  private async usable(text: string, at: number, only?: OrgId): Promise<AnchoredCheckpoint | undefined> {
    if (text.trim() === '') return undefined;
    const checkpoint = readLine(text);
    if (!checkpoint) this.unreadable++;
    if (!checkpoint || (only !== undefined && checkpoint.orgId !== only)) return undefined;
    const reason = await signatureFault(checkpoint, this.check);
    if (reason === undefined) return checkpoint;
    if (++this.unusable.count <= mostShown) this.unusable.shown.push(`line ${at} ${reason}`);
    return undefined;
  }

  private async compareBatch(lines: readonly Line[]): Promise<void> {
    const anchored = lines.map(({ checkpoint }) => checkpoint);
    const stored = keyed(await this.checkpoints.findNumbered(anchored), ({ orgId, number }) => `${orgId} ${number}`);
    const hashes = keyed(await this.checkpoints.chainHashes(anchored), ({ orgId, sequence }) => `${orgId} ${sequence}`);
    // Read last, so that events which retention drops in the meantime count as dropped.
    const cuts = new Map<string, Cut | undefined>();
    for (const { orgId } of anchored)
      if (!cuts.has(orgId)) cuts.set(orgId, await this.checkpoints.newestCut(orgId as OrgId));
    for (const { at, checkpoint } of lines) {
      const { orgId, number, sequence } = checkpoint;
      if (this.isNewer(checkpoint)) {
        tallyOf(this.orgs, checkpoint).newer++;
        continue;
      }
      const fault = anchorFault(checkpoint, {
        stored: stored.get(`${orgId} ${number}`),
        chainHash: hashes.get(`${orgId} ${sequence}`)?.hash,
        cut: cuts.get(orgId),
      });
      count(this.orgs, checkpoint, fault && { ...fault, reason: `${fault.reason} (line ${at} of the anchor)` });
    }
  }

  /**
   * Returns whether a checkpoint was signed after the end of an export. Its time alone is not enough: after
   * the end of a chain was removed, the gateway uses the numbers again, and these differ from the anchored ones.
   */
  private isNewer({ number, at }: AnchoredCheckpoint): boolean {
    const { end } = this.checkpoints;
    return end !== undefined && number > end.number && Date.parse(at) > Date.parse(end.at);
  }
}

/**
 * Parses a line of an anchor; undefined when it is not a checkpoint. The JSON may be formatted differently, for
 * example with spaces.
 */
function readLine(text: string): AnchoredCheckpoint | undefined {
  try {
    return AnchoredCheckpoint.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

async function signatureFault(checkpoint: AnchoredCheckpoint, check: SignatureCheck): Promise<string | undefined> {
  const answer = await check(statementBytes(statementOf(checkpoint)), checkpoint.kid, checkpoint.signature);
  if (answer === 'unknown') return `is signed by ${checkpoint.kid}, a key that this deployment does not have`;
  return answer === 'invalid' ? `has a signature that is not that of ${checkpoint.kid}` : undefined;
}

function tallyOf(orgs: Map<OrgId, Tally>, { orgId, at }: AnchoredCheckpoint): Tally {
  const known = orgs.get(orgId as OrgId) ?? newTally(at);
  orgs.set(orgId as OrgId, known);
  return known;
}

function count(orgs: Map<OrgId, Tally>, checkpoint: AnchoredCheckpoint, fault: AnchorFault | undefined): void {
  const { number, sequence, at } = checkpoint;
  const known = tallyOf(orgs, checkpoint);
  known.checked++;
  if (number > known.lastNumber) [known.lastNumber, known.lastAt] = [number, at];
  if (fault?.event === undefined) known.confirmedTo = Math.max(known.confirmedTo, sequence);
  if (!fault) return;
  if (++known.contradicted === 1) known.reason = fault.reason;
  const kind = fault.event ? 'event' : 'checkpoint';
  known.lowest[kind] = Math.min(known.lowest[kind], sequence);
  known.isCutOff &&= fault.event !== 'changed' && !fault.isReplaced;
}

function newTally(lastAt: string): Tally {
  const lowest = { event: Infinity, checkpoint: Infinity };
  return { checked: 0, newer: 0, lastNumber: 0, lastAt, contradicted: 0, confirmedTo: 0, isCutOff: true, lowest };
}

function resultOf({ lowest: { event, checkpoint }, ...org }: Tally): AnchoredOrg {
  const brokenAt = event < Infinity ? Math.min(event, org.confirmedTo + 1) : checkpoint;
  const isCutOff = org.isCutOff && event < Infinity;
  return { ...org, isCutOff, ...(brokenAt < Infinity && { brokenAt }) };
}

function keyed<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item> {
  return new Map(items.map((item) => [keyOf(item), item]));
}
