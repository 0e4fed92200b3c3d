import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { isUuid, newId, type OrgId } from '../kernel/ids.js';
import { AdminActs } from '../platform/bus/admin-acts.js';
import { RowWriter, type RowChange } from '../platform/database/row-writer.js';
import { Cursors, pageOf, type Page } from '../platform/http/cursor.js';
import type { ActEvent, AuditEvent } from './audit-event.js';
import { AuditEventStore, type AuditFilter, type StoredEvent } from './audit-event.store.js';
import { AuditVerificationService } from './audit-verification.service.js';
import { auditRows } from './audit.recorder.js';
import { AuditSealer } from './audit.sealer.js';
import type { AuditEventView, DecisionView, Verification } from './audit.types.js';

/** Lists, verifies and extends the audit. */
@Injectable()
export class AuditService {
  private readonly running = new Map<OrgId, Promise<Verification>>();
  private readonly queued = new Map<OrgId, Promise<Verification>>();

  constructor(
    private readonly admin: AdminActs,
    private readonly store: AuditEventStore,
    private readonly sealer: AuditSealer,
    private readonly verification: AuditVerificationService,
    private readonly cursors: Cursors,
    private readonly writer: RowWriter,
  ) {}

  events(ctx: CallContext, filter: AuditFilter & { limit: number; cursor?: string }): Promise<Page<AuditEventView>> {
    return this.admin.read(ctx, 'audit.events', () => this.page(ctx.org.id, filter, viewOf));
  }

  decisions(ctx: CallContext, filter: AuditFilter & { limit: number; cursor?: string }): Promise<Page<DecisionView>> {
    return this.admin.read(ctx, 'audit.decisions', () =>
      this.page(ctx.org.id, { ...filter, actsOnly: true }, decisionOf),
    );
  }

  decision(ctx: CallContext, id: string): Promise<DecisionView> {
    return this.admin.read(ctx, 'audit.decision', async () => {
      const row = isUuid(id) ? await this.store.findEvent(ctx.org.id, id) : undefined;
      if (!row) throw new RialtoError('not_found', { message: 'no such decision' });
      return decisionOf(row);
    });
  }

  /**
   * Seals the caller's org, then verifies its chain from the first event to the last and against every checkpoint
   * (RE-84).
   */
  verify(ctx: CallContext): Promise<Verification> {
    return this.admin.read(ctx, 'audit.verify', () => this.nextVerification(ctx.org.id));
  }

  /** Records a security fact that is not an act, e.g. a token that claims another tenant. */
  async note(orgId: OrgId, type: string, facts: Record<string, unknown>): Promise<void> {
    await this.writer.write(this.rowsOf(orgId, type, facts));
  }

  /** Returns the rows of such a fact, for callers that commit them together with their own change. */
  rowsOf(orgId: string, type: string, facts: Record<string, unknown>): RowChange[] {
    const event: AuditEvent = { ...facts, id: newId(), orgId, at: new Date(systemClock.now()).toISOString(), type };
    return auditRows(event);
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

  private async page<View>(
    org: OrgId,
    filter: AuditFilter & { limit: number; cursor?: string },
    view: (row: StoredEvent) => View,
  ): Promise<Page<View>> {
    const scope = `audit:${org}`;
    const [at, id] = filter.cursor ? this.cursors.decode(scope, filter.cursor, 2) : [];
    const rows = await this.store.findEvents(org, filter, filter.limit, at && id ? { at, id } : undefined);
    return pageOf(rows, filter.limit, view, (row) => this.cursors.encode(scope, [row.at.toISOString(), row.id]));
  }
}

function viewOf(row: StoredEvent): AuditEventView {
  const chain =
    row.sequence === null ? null : { sequence: Number(row.sequence), prevHash: row.prev_hash!, hash: row.hash! };
  return { ...row.event, chain };
}

function decisionOf(row: StoredEvent): DecisionView {
  const { id, at, principal, action, resource, verb, legacyAlias, calledAs, decision, ...rest } = row.event as ActEvent;
  const { surface, outcome, requestId, sessionId } = rest;
  return {
    id,
    at,
    principal,
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
    reason: decision?.reason ?? 'no decision could be made',
    policyVersion: decision?.version ?? null,
  };
}
