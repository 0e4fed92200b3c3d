import { Injectable } from '@nestjs/common';
import { parseExact } from '../../protocol/exact-integers.js';
import type { CallContext } from '../../kernel/call-context.js';
import { isUuid } from '../../kernel/ids.js';
import type { Json } from '../../kernel/json.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { Cursors, pageOf, type Page } from '../../platform/http/cursor.js';
import { callerOf } from '../agents/agent-stats.recorder.js';
import { DispatchStore, type DispatchRow } from './dispatch.store.js';
import type { DispatchQuery, DispatchView } from '../dispatch.types.js';
import { RegistryService } from '../registry.service.js';

/**
 * Lists the calls that were made to registered agents. An admin sees all calls of the org, other callers see only
 * their own.
 */
@Injectable()
export class DispatchLogService {
  constructor(
    private readonly acts: AdminActs,
    private readonly registry: RegistryService,
    private readonly dispatches: DispatchStore,
    private readonly cursors: Cursors,
  ) {}

  /** Returns one page, newest first. Throws `denied`, and `invalid_params` for a cursor of another list. */
  list(ctx: CallContext, { limit, cursor, agentId: named, ...query }: DispatchQuery): Promise<Page<DispatchView>> {
    return this.acts.read(ctx, 'dispatch.list', async () => {
      const agentId = named === undefined ? undefined : await this.agentId(ctx, named);
      if (agentId === null) return { items: [], nextCursor: null };
      const filter = { ...query, agentId, caller: ctx.principal.role === 'admin' ? undefined : callerOf(ctx) };
      const scope = `dispatches:${ctx.org.id}:${JSON.stringify(filter)}`;
      const after = cursor === undefined ? undefined : this.cursors.decode(scope, cursor, 2);
      const rows = await this.dispatches.findPage(ctx.org.id, filter, limit, after);
      return pageOf(rows, limit, dispatchView, (row) => this.cursors.encode(scope, [row.at, row.id]));
    });
  }

  /** Returns the id for a slug or an id, also the id of a removed agent; null for an unknown slug. */
  private async agentId({ org }: CallContext, named: string): Promise<string | null> {
    const { bySlug } = await this.registry.snapshot(org.id);
    return bySlug.get(named)?.row.id ?? (isUuid(named) ? named : null);
  }
}

function dispatchView(row: DispatchRow): DispatchView {
  const [, kind, workType] = /^(explicit|transparent):(.*)$/s.exec(row.workType) ?? [];
  return {
    dispatchId: row.id,
    agentId: row.agentId,
    agentName: row.agentName,
    skillId: row.skillId,
    taskId: row.taskId,
    status: row.state,
    // A work type without a prefix belongs to a routed call.
    dispatchType: kind === 'explicit' ? 'explicit' : 'transparent',
    workType: workType ?? row.workType,
    caller: row.caller,
    input: jsonOf(row.input),
    output: jsonOf(row.output),
    errorCode: row.errorCode,
    dispatchedAt: row.startedAt.toISOString(),
    completedAt: row.endedAt?.toISOString() ?? null,
    latencyMs: row.durationMs,
    costTokens: row.cost,
  };
}

function jsonOf(text: string | null): Json {
  return text === null ? null : (parseExact(text) as Json);
}
