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

/** What is known of one org's audit. */
export interface OrgReport extends Verification {
  readonly orgId: OrgId;
  /** Null for an org that is gone from the database. */
  readonly slug: string | null;
  /** Absent when the anchor has nothing of the org, or none was given. */
  readonly anchor?: AnchoredOrg;
}

/** The outcome for all orgs. */
export interface AuditReport {
  readonly verdict: Verdict;
  readonly orgs: readonly OrgReport[];
  /** Why nothing can be said of some of it. */
  readonly doubts: readonly string[];
  /** Lines of the anchor that are no checkpoint. */
  readonly unreadable: number;
}

/** Looks at the audit for the `rialto` command. Composed by hand, because no application runs around it. Changes nothing. */
export class AuditInspectionService {
  private constructor(
    private readonly events: AuditEventStore,
    private readonly checkpoints: AuditCheckpointStore,
    private readonly verification: AuditVerificationService,
    private readonly check: SignatureCheck,
  ) {}

  /** On a migrated database. `trusted` are public keys that were kept elsewhere. */
  static open(dataSource: DataSource, settings: Settings, trusted: readonly PublicJwk[]): AuditInspectionService {
    const pg = Pg.of(dataSource);
    const keys = new SigningKeys(pg, new Vault(settings.encryptionKey, settings.otherEncryptionKey));
    const [events, checkpoints] = [new AuditEventStore(pg), new AuditCheckpointStore(pg)];
    const verification = new AuditVerificationService(events, checkpoints, keys);
    return new AuditInspectionService(events, checkpoints, verification, keys.verifier(trusted));
  }

  /** The org with a slug or an id; an id may be that of an org which is gone. */
  async findOrg(name: string): Promise<OrgId | undefined> {
    const found = (await this.events.orgs()).find(({ id, slug }) => slug === name || id === name)?.id;
    return found ?? (/^[0-9a-f-]{36}$/.test(name) ? (name as OrgId) : undefined);
  }

  /** Verifies every org, or one, and compares each with the lines of an anchor. Throws `unavailable` when no signing key can be opened. */
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

/** The verdict on an org, once its anchored checkpoints are known. */
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
