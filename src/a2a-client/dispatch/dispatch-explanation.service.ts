import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { RoutingService } from '../../registry/routing.service.js';
import type { DispatchExplanation, DispatchStep } from '../dispatch.types.js';
import { workWish } from './steps.js';

/** Explains the choice of an agent for a step; calls no agent. */
@Injectable()
export class DispatchExplanationService {
  constructor(
    private readonly acts: AdminActs,
    private readonly routing: RoutingService,
  ) {}

  /** Explains which agent `dispatch` would choose now, and why; calls no agent. Throws `invalid_params`, `denied`. */
  explain(ctx: CallContext, step: DispatchStep): Promise<DispatchExplanation> {
    return this.acts.read(ctx, 'dispatch.explain', async () => {
      const { seed, chosen, candidates } = await this.routing.choose(ctx, workWish(step));
      return { seed, chosen: chosen?.agent.row.slug ?? null, candidates: [...candidates] };
    });
  }
}
