import type { DataSource } from 'typeorm';
import type { OrgId } from '../kernel/ids.js';
import type { Settings } from '../platform/config/settings.js';
import { Pg } from '../platform/database/pg.js';
import { SigningKeys, type PublicJwk, type SignatureCheck } from '../platform/secrets/signing-keys.js';
import { Vault } from '../platform/secrets/vault.js';
import { AnchorComparison, type AnchoredOrg } from './anchor-comparison.js';
import { AuditCheckpointStore } from './audit-checkpoint.store.js';
import { AuditEventStore } from './audit-event.store.js';
import { AuditVerificationService } from './audit-verification.service.js';
import type { Verification } from './audit.types.js';

type Verdict = Verification['verdict'];

/** Result of the inspection of one org's audit. */
export interface OrgReport extends Verification {
  readonly orgId: OrgId;
  /** Null for an org that is no longer in the database. */
  readonly slug: string | null;
  /** Undefined when no anchor was given, or it has no checkpoint of the org. */
  readonly anchor?: AnchoredOrg;
}

/** Result of the inspection of all orgs. */
export interface AuditReport {
  readonly verdict: Verdict;
  readonly orgs: readonly OrgReport[];
  /** Reasons why parts cannot be verified. */
  readonly doubts: readonly string[];
  /** Number of lines of the anchor that are not a checkpoint. */
  readonly unreadable: number;
}

/**
 * Inspects the audit for the `rialto` command. It is composed by hand, because no application runs around it. Changes
 * nothing.
 */
export class AuditInspectionService {
  private constructor(
    private readonly events: AuditEventStore,
    private readonly checkpoints: AuditCheckpointStore,
    private readonly verification: AuditVerificationService,
    private readonly check: SignatureCheck,
  ) {}

  /** Creates the service on a migrated database. `trusted` are public keys that were stored elsewhere. */
  static open(dataSource: DataSource, settings: Settings, trusted: readonly PublicJwk[]): AuditInspectionService {
    const pg = Pg.of(dataSource);
    const keys = new SigningKeys(pg, new Vault(settings.encryptionKey, settings.otherEncryptionKey));
    const [events, checkpoints] = [new AuditEventStore(pg), new AuditCheckpointStore(pg)];
    const verification = new AuditVerificationService(events, checkpoints, keys);
    return new AuditInspectionService(events, checkpoints, verification, keys.verifier(trusted));
  }

  /** Returns the org with a slug or an id. The id may be that of an org that is no longer in the database. */
  async findOrg(name: string): Promise<OrgId | undefined> {
    const found = (await this.events.orgs()).find(({ id, slug }) => slug === name || id === name)?.id;
    return found ?? (/^[0-9a-f-]{36}$/.test(name) ? (name as OrgId) : undefined);
  }

  /**
   * Verifies one or all orgs and compares them with the lines of an anchor. Throws `unavailable` when no signing key
   * can be opened.
   */
  async report(only?: OrgId, anchor?: AsyncIterable<string>): Promise<AuditReport> {
    const compared = anchor && (await new AnchorComparison(this.checkpoints, this.check).run(anchor, only));
    const known = new Map((await this.events.orgs()).map(({ id, slug }) => [id, slug]));
    const ids = only === undefined ? new Set([...known.keys(), ...(compared?.orgs.keys() ?? [])]) : [only];
    const orgs: OrgReport[] = [];
    for (const orgId of ids) {
      const verified = await this.verification.verify(orgId, Infinity, this.check);
      orgs.push({ orgId, slug: known.get(orgId) ?? null, ...against(verified, compared?.orgs.get(orgId)) });
    }
    const doubts = [...(compared?.unusable.shown ?? [])];
    const more = (compared?.unusable.count ?? 0) - doubts.length;
    if (more > 0) doubts.push(`and ${more} more`);
    if (compared?.orgs.size === 0 && doubts.length === 0) doubts.push('the anchor has no checkpoint to compare with');
    const all: Verdict[] = [...orgs.map(({ verdict }) => verdict), ...doubts.map(() => 'unverifiable' as const)];
    return { verdict: worst(all), orgs, doubts, unreadable: compared?.unreadable ?? 0 };
  }
}

/** Adds the result of the anchor comparison to the verification of an org. */
function against(verified: Verification, anchor: AnchoredOrg | undefined): Verification & { anchor?: AnchoredOrg } {
  if (!anchor) return verified;
  if (anchor.contradicted === 0) return { ...verified, anchor };
  return {
    ...verified,
    valid: false,
    verdict: 'changed',
    reason: verified.verdict === 'changed' ? verified.reason : anchor.reason,
    anchor,
  };
}

function worst(verdicts: readonly Verdict[]): Verdict {
  return verdicts.includes('changed') ? 'changed' : verdicts.includes('unverifiable') ? 'unverifiable' : 'intact';
}
