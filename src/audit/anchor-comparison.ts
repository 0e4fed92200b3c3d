import type { OrgId } from '../kernel/ids.js';
import type { SignatureCheck } from '../platform/secrets/signing-keys.js';
import { AuditCheckpointStore, type Cut } from './audit-checkpoint.store.js';
import { AnchoredCheckpoint, anchorFault, statementBytes, statementOf } from './checkpoint.js';

const batch = 500;
/** Number of unusable checkpoints that are listed; all of them are counted. */
const mostShown = 20;

/** Result of the comparison for one org. */
export interface AnchoredOrg {
  /** Number of checkpoints with a valid signature. A repeated line counts each time. */
  checked: number;
  /** Number of the newest checkpoint; `lastAt` is its time. */
  lastNumber: number;
  lastAt: string;
  /** First contradiction between the database and the checkpoints, and the number of contradicted checkpoints. */
  reason?: string;
  contradicted: number;
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

interface Line {
  readonly at: number;
  readonly checkpoint: AnchoredCheckpoint;
}

/** Compares the audit with the checkpoints of an anchor outside the database. Changes nothing. */
export class AnchorComparison {
  private readonly orgs = new Map<OrgId, AnchoredOrg>();
  private readonly unusable = { count: 0, shown: [] as string[] };
  private unreadable = 0;

  constructor(
    private readonly checkpoints: AuditCheckpointStore,
    private readonly check: SignatureCheck,
  ) {}

  /**
   * Reads JSON lines in any order and compares them; with `only`, those of one org. Throws `unavailable` when this
   * process can open no signing key.
   */
  async run(lines: AsyncIterable<string>, only?: OrgId): Promise<Comparison> {
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
    return { orgs: this.orgs, unusable: this.unusable, unreadable: this.unreadable };
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
    const stored = keyed(await this.checkpoints.named(anchored), ({ orgId, number }) => `${orgId} ${number}`);
    const hashes = keyed(await this.checkpoints.chainHashes(anchored), ({ orgId, sequence }) => `${orgId} ${sequence}`);
    // Read last, so that events which retention drops in the meantime count as dropped.
    const cuts = new Map<string, Cut | undefined>();
    for (const { orgId } of anchored)
      if (!cuts.has(orgId)) cuts.set(orgId, await this.checkpoints.newestCut(orgId as OrgId));
    for (const { at, checkpoint } of lines) {
      const { orgId, number, sequence } = checkpoint;
      const reason = anchorFault(checkpoint, {
        stored: stored.get(`${orgId} ${number}`),
        chainHash: hashes.get(`${orgId} ${sequence}`)?.hash,
        cut: cuts.get(orgId),
      });
      tally(this.orgs, checkpoint, reason === undefined ? undefined : `${reason} (line ${at} of the anchor)`);
    }
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

function tally(
  orgs: Map<OrgId, AnchoredOrg>,
  { orgId, number, at }: AnchoredCheckpoint,
  reason: string | undefined,
): void {
  const known = orgs.get(orgId as OrgId) ?? { checked: 0, lastNumber: 0, lastAt: at, contradicted: 0 };
  known.checked++;
  if (number > known.lastNumber) [known.lastNumber, known.lastAt] = [number, at];
  if (reason !== undefined && ++known.contradicted === 1) known.reason = reason;
  orgs.set(orgId as OrgId, known);
}

function keyed<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item> {
  return new Map(items.map((item) => [keyOf(item), item]));
}
