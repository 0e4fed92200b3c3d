import { Inject, Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { lineageId, LineageSeal } from '../../platform/secrets/lineage.js';

/** Builds the lineage header for the next agent, and refuses calls that would go in a circle (AN-61, abuse 37). */
@Injectable()
export class Delegation {
  constructor(
    private readonly seal: LineageSeal,
    @Inject(SETTINGS) private readonly settings: Pick<Settings, 'A2A_CONTINUATION_MAX_REMOTE_WORK_MS'>,
  ) {}

  /**
   * Returns the signed lineage for a call to an agent. Its deadline is the deadline of the call behind this one, but
   * not later than the end of this call, or than the time for which its task is followed when that is longer. Throws
   * `loop_detected` when the agent is already part of this call chain, and `remote_timeout` when the call behind this
   * one has no time left.
   */
  onwards({ lineage, depth }: CallContext, agentUrl: string, leftMs: number): string {
    const id = lineageId(agentUrl);
    const path = lineage?.path ?? [];
    if (path.includes(id))
      throw new RialtoError('loop_detected', { message: 'this agent is already at work behind this call' });
    const now = systemClock.now();
    const ownDeadlineAt = now + Math.max(leftMs, this.settings.A2A_CONTINUATION_MAX_REMOTE_WORK_MS);
    const deadlineAt = Math.min(ownDeadlineAt, lineage?.deadlineAt ?? Infinity);
    if (deadlineAt <= now)
      throw new RialtoError('remote_timeout', { message: 'the call behind this one has no time left' });
    return this.seal.sealLineage({ depth: depth + 1, path: [...path, id], deadlineAt: Math.ceil(deadlineAt) });
  }
}
