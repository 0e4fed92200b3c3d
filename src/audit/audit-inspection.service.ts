import type { X509Certificate } from 'node:crypto';
import type { DataSource } from 'typeorm';
import type { OrgId } from '../kernel/ids.js';
import type { Settings } from '../platform/config/settings.js';
import { Pg } from '../platform/database/pg.js';
import { publicKeyCheck, SigningKeys, type PublicJwk, type SignatureCheck } from '../platform/secrets/signing-keys.js';
import { Vault } from '../platform/secrets/vault.js';
import { AnchorComparison, type AnchoredOrg, type ComparedCheckpoints } from './anchors/anchor-comparison.js';
import { AuditCheckpointStore } from './audit-checkpoint.store.js';
import { AuditEventStore } from './audit-event.store.js';
import { AuditVerificationService } from './audit-verification.service.js';
import type { Verification } from './audit.types.js';
import { ChainWalk } from './chain-walk.js';
import { ExportedAudit, type FileFault } from './export/exported-audit.js';
import { AuditTimestampStore } from './timestamps/audit-timestamp.store.js';
import { verifyTimestamps, type StampedOrg, type TimestampSource } from './timestamps/timestamp-walk.js';

type Verdict = Verification['verdict'];

/** Result of the inspection of one org's audit. */
export interface OrgReport extends Verification {
  readonly orgId: OrgId;
  /** Null for an org that is no longer in the database, and for an export without a signed end. */
  readonly slug: string | null;
  /** Undefined when no anchor was given, or it has no checkpoint of the org. */
  readonly anchor?: AnchoredOrg;
  /** Undefined when no checkpoint has a timestamp. */
  readonly timestamps?: StampedOrg;
}

/** Result of the inspection of all orgs. */
export interface AuditReport {
  readonly verdict: Verdict;
  readonly orgs: readonly OrgReport[];
  /** Reasons why parts cannot be verified. */
  readonly doubts: readonly string[];
  /** Number of lines of the anchor that are not a checkpoint. */
  readonly unreadable: number;
  /** When the export was made, and its last event, from its signed end. */
  readonly exported?: { readonly at: string; readonly sequence: number };
}

/** The source of an inspection: the database, or an export. */
interface Inspected {
  orgs(): Promise<{ id: OrgId; slug: string | null }[]>;
  verify(org: OrgId): Promise<Verification>;
  readonly checkpoints: ComparedCheckpoints;
  readonly timestamps: TimestampSource;
  readonly check: SignatureCheck;
  readonly doubts: readonly string[];
}

/**
 * Inspects the audit for the `rialto` command. It is composed by hand, because no application runs around it. Changes
 * nothing.
 */
export class AuditInspectionService {
  private constructor(private readonly inspected: Inspected) {}

  /** Creates the service on a migrated database. `trusted` are public keys that were stored elsewhere. */
  static open(dataSource: DataSource, settings: Settings, trusted: readonly PublicJwk[] = []): AuditInspectionService {
    const pg = Pg.of(dataSource);
    const keys = new SigningKeys(pg, new Vault(settings.encryptionKey, settings.otherEncryptionKey));
    const [events, checkpoints] = [new AuditEventStore(pg), new AuditCheckpointStore(pg)];
    const verification = new AuditVerificationService(events, checkpoints, keys);
    const check = keys.verifier(trusted);
    const verify = (org: OrgId): Promise<Verification> => verification.verify(org, Infinity, check);
    const timestamps = new AuditTimestampStore(pg);
    const orgs = () => events.orgs();
    return new AuditInspectionService({ orgs, verify, checkpoints, timestamps, check, doubts: [] });
  }

  /**
   * Verifies an export file. Only `trusted` keys are used when they are given, else those of the export. Throws
   * `unprocessable` for a file that is not an export, and the error of the file system.
   */
  static async reportOfExport(
    file: string,
    trusted?: readonly PublicJwk[],
    anchor?: AsyncIterable<string>,
    authorities?: readonly X509Certificate[],
  ): Promise<AuditReport> {
    const exported = await ExportedAudit.open(file);
    try {
      const { orgId, keys } = exported.header;
      const check = publicKeyCheck(trusted ?? keys);
      const fault = await exported.verifyFile(check);
      const { doubts, signedEnd: end } = exported;
      const slug = end?.slug ?? null;
      const orgs = () => Promise.resolve([{ id: orgId, slug }]);
      const verify = async (org: OrgId): Promise<Verification> => {
        const range = { org, upTo: Infinity, cut: await exported.newestCut() };
        return withFault(await new ChainWalk(range, exported, exported, check).verify(), fault);
      };
      const inspected = { orgs, verify, checkpoints: exported, timestamps: exported, check, doubts };
      const report = await new AuditInspectionService(inspected).report(orgId, anchor, authorities);
      return end ? { ...report, exported: { at: end.at, sequence: end.sequence } } : report;
    } finally {
      await exported.close();
    }
  }

  /** Returns the org with a slug or an id. The id may be that of an org that is no longer in the database. */
  async findOrg(name: string): Promise<OrgId | undefined> {
    const found = (await this.inspected.orgs()).find(({ id, slug }) => slug === name || id === name)?.id;
    return found ?? (/^[0-9a-f-]{36}$/.test(name) ? (name as OrgId) : undefined);
  }

  /**
   * Verifies one or all orgs with their timestamps, and compares them with the lines of an anchor. With `authorities`,
   * a timestamp has to be of one of them. Throws `unavailable` when no signing key can be opened.
   */
  async report(
    only?: OrgId,
    anchor?: AsyncIterable<string>,
    authorities?: readonly X509Certificate[],
  ): Promise<AuditReport> {
    const { checkpoints, timestamps, check } = this.inspected;
    const compared = anchor && (await new AnchorComparison(checkpoints, check).compareLines(anchor, only));
    const known = new Map((await this.inspected.orgs()).map(({ id, slug }) => [id, slug]));
    const ids = only === undefined ? new Set([...known.keys(), ...(compared?.orgs.keys() ?? [])]) : [only];
    const orgs: OrgReport[] = [];
    for (const orgId of ids) {
      const verified = against(await this.inspected.verify(orgId), compared?.orgs.get(orgId));
      const stamped = await verifyTimestamps(timestamps, orgId, authorities);
      const doubted = withDoubts(withTimestamps(verified, stamped), this.inspected.doubts);
      orgs.push({ orgId, slug: known.get(orgId) ?? null, ...doubted });
    }
    const doubts = [...this.inspected.doubts, ...(compared?.unusable.shown ?? [])];
    const more = (compared?.unusable.count ?? 0) - (compared?.unusable.shown.length ?? 0);
    if (more > 0) doubts.push(`and ${more} more`);
    const checked = [...(compared?.orgs.values() ?? [])].some((org) => org.checked > 0);
    if (compared?.unusable.count === 0 && !checked) doubts.push('the anchor has no checkpoint to compare with');
    if (authorities && !orgs.some((org) => org.timestamps)) doubts.push('no checkpoint has a timestamp');
    const all: Verdict[] = [...orgs.map(({ verdict }) => verdict), ...doubts.map(() => 'unverifiable' as const)];
    return { verdict: worst(all), orgs, doubts, unreadable: compared?.unreadable ?? 0 };
  }
}

/** Adds the result of the anchor comparison to the verification of an org. */
function against(verified: Verification, anchor: AnchoredOrg | undefined): Verification & { anchor?: AnchoredOrg } {
  if (anchor?.brokenAt === undefined) return anchor ? { ...verified, anchor } : verified;
  const end = Math.max(verified.lastSequence ?? 0, anchor.confirmedTo);
  const first = anchor.isCutOff && verified.verdict === 'intact' ? end + 1 : anchor.brokenAt;
  const brokenAt = Math.min(first, verified.brokenAt ?? Infinity);
  const reason = verified.verdict === 'changed' ? verified.reason : anchor.reason;
  return { ...verified, valid: false, verdict: 'changed', brokenAt, reason, anchor };
}

/** Adds the contradiction of a file to the verification of its chain. The one at the first event counts. */
function withFault(verified: Verification, fault: FileFault | undefined): Verification {
  if (!fault || (verified.brokenAt !== null && verified.brokenAt < (fault.brokenAt ?? Infinity))) return verified;
  return { ...verified, ...fault, valid: false, verdict: 'changed' };
}

/** Adds the timestamps of an org. Their fault counts unless the verdict is already as bad. */
function withTimestamps<Found extends Verification>(
  verified: Found,
  timestamps: StampedOrg | undefined,
): Found & { timestamps?: StampedOrg } {
  if (!timestamps) return verified;
  const { fault } = timestamps;
  if (!fault || worst([verified.verdict, fault.verdict]) === verified.verdict) return { ...verified, timestamps };
  const { verdict, reason, sequence } = fault;
  const brokenAt = verdict === 'changed' ? sequence : null;
  return { ...verified, valid: false, verdict, reason, brokenAt, timestamps };
}

/** Adds the doubts about the file that was verified. */
function withDoubts<Verified extends Verification>(verified: Verified, [doubt]: readonly string[]): Verified {
  if (doubt === undefined || verified.verdict !== 'intact') return verified;
  return { ...verified, valid: false, verdict: 'unverifiable', reason: doubt };
}

function worst(verdicts: readonly Verdict[]): Verdict {
  return verdicts.includes('changed') ? 'changed' : verdicts.includes('unverifiable') ? 'unverifiable' : 'intact';
}
