import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { isUuid, type OrgId } from '../kernel/ids.js';
import { AdminActs } from '../platform/bus/admin-acts.js';
import { Cursors, pageOf, type Page } from '../platform/http/cursor.js';
import type { ActEvent } from './audit-event.js';
import { AuditEventStore, type AuditFilter, type StoredEvent } from './audit-event.store.js';
import { AuditVerificationService } from './audit-verification.service.js';
import { AuditSealer } from './audit.sealer.js';
import type { AuditEventView, DecisionView, Verification } from './audit.types.js';
import { withFacts } from './personal/personal-facts.js';
import { PersonalReader, type ReadFacts } from './personal/personal-reader.js';

/** Lists and verifies the audit. */
@Injectable()
export class AuditReadService {
  private readonly running = new Map<OrgId, Promise<Verification>>();
  private readonly queued = new Map<OrgId, Promise<Verification>>();

  constructor(
    private readonly admin: AdminActs,
    private readonly store: AuditEventStore,
    private readonly sealer: AuditSealer,
    private readonly verification: AuditVerificationService,
    private readonly cursors: Cursors,
    private readonly personal: PersonalReader,
  ) {}

  events(ctx: CallContext, filter: AuditFilter & { limit: number; cursor?: string }): Promise<Page<AuditEventView>> {
    return this.admin.read(ctx, 'audit.events', () => this.eventPage(ctx.org.id, filter, eventView));
  }

  decisions(ctx: CallContext, filter: AuditFilter & { limit: number; cursor?: string }): Promise<Page<DecisionView>> {
    return this.admin.read(ctx, 'audit.decisions', () =>
      this.eventPage(ctx.org.id, { ...filter, actsOnly: true }, decisionOf),
    );
  }

  decision(ctx: CallContext, id: string): Promise<DecisionView> {
    return this.admin.read(ctx, 'audit.decision', async () => {
      const row = isUuid(id) ? await this.store.findEvent(ctx.org.id, id) : undefined;
      if (!row) throw new RialtoError('not_found', { message: 'no such decision' });
      const [facts] = await this.personal.read(ctx.org.id, [row.event]);
      return decisionOf(shownOf(row, facts!));
    });
  }

  /**
   * Seals the caller's org, then verifies its chain from the first event to the last and against every checkpoint
   * (RE-84).
   */
  verify(ctx: CallContext): Promise<Verification> {
    return this.admin.read(ctx, 'audit.verify', () => this.nextVerification(ctx.org.id));
  }

  /**
   * Runs one verification for each org at a time. Requests that arrive in the meantime share the next one, so that
   * each result covers all events that existed before its request.
   */
  private nextVerification(org: OrgId): Promise<Verification> {
    const waiting = this.queued.get(org);
    if (waiting) return waiting;
    const before = this.running.get(org) ?? Promise.resolve();
    const run = before
      .catch(() => undefined)
      .then(async () => {
        this.queued.delete(org);
        this.running.set(org, run);
        await this.sealer.sealOrg(org, true);
        return this.verification.verify(org);
      })
      .finally(() => {
        if (this.running.get(org) === run) this.running.delete(org);
      });
    this.queued.set(org, run);
    return run;
  }

  private async eventPage<View>(
    org: OrgId,
    filter: AuditFilter & { limit: number; cursor?: string },
    view: (row: ShownEvent) => View,
  ): Promise<Page<View>> {
    const scope = `audit:${org}`;
    const [at, id] = filter.cursor ? this.cursors.decode(scope, filter.cursor, 2) : [];
    const rows = await this.store.findEvents(org, filter, filter.limit, at && id ? { at, id } : undefined);
    const facts = await this.personal.read(
      org,
      rows.map(({ event }) => event),
    );
    const shown = rows.map((row, index) => shownOf(row, facts[index]!));
    return pageOf(shown, filter.limit, view, (row) => this.cursors.encode(scope, [row.at.toISOString(), row.id]));
  }
}

/** An event with its personal facts. */
interface ShownEvent extends StoredEvent {
  readonly personal?: { readonly opened: string[]; readonly erased: boolean };
}

function shownOf(row: StoredEvent, { opened, isErased }: ReadFacts): ShownEvent {
  if (row.event.sealed === undefined) return row;
  const { event, added } = withFacts(
    row.event,
    opened.map(({ facts }) => facts),
  );
  return { ...row, event, personal: { opened: added, erased: isErased } };
}

function eventView(row: ShownEvent): AuditEventView {
  const chain =
    row.sequence === null ? null : { sequence: Number(row.sequence), prevHash: row.prevHash!, hash: row.hash! };
  return { ...row.event, ...(row.personal && { personal: row.personal }), chain };
}

function decisionOf(row: ShownEvent): DecisionView {
  const { id, at, principal, action, resource, verb, legacyAlias, calledAs, decision, ...rest } = row.event as ActEvent;
  const { surface, outcome, requestId, sessionId } = rest;
  return {
    id,
    at,
    principal: { ...principal, id: principal.id ?? null },
    action,
    resource,
    verb,
    legacyAlias: legacyAlias ?? null,
    calledAs: calledAs ?? null,
    surface,
    outcome,
    requestId,
    sessionId,
    decision: decision?.allowed ? 'allow' : 'deny',
    policyIds: decision?.policies ?? [],
    reason: decision ? (decision.reason ?? null) : 'no decision could be made',
    policyVersion: decision?.version ?? null,
    approvalId: decision?.approval?.id ?? null,
  };
}
