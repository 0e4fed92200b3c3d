import { Inject, Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { lineageId, LineageSeal } from '../../platform/secrets/lineage.js';

/** Says to an agent through whom a call came to it, and refuses to go in circles (AN-61, abuse 37). */
@Injectable()
export class Delegation {
  constructor(
    private readonly seal: LineageSeal,
    @Inject(SETTINGS) private readonly settings: Pick<Settings, 'A2A_CONTINUATION_MAX_REMOTE_WORK_MS'>,
  ) {}

  /**
   * The lineage for a call to an agent, signed. What the agent does for it counts until the deadline of the call behind, or as long
   * as its task is followed. Throws `loop_detected` when the agent is behind this call, `remote_timeout` when that has no time left.
   */
  onwards({ lineage, depth }: CallContext, agentUrl: string, leftMs: number): string {
    const id = lineageId(agentUrl);
    const path = lineage?.path ?? [];
    if (path.includes(id))
      throw new RialtoError('loop_detected', { message: 'this agent is already at work behind this call' });
    const now = systemClock.now();
    const own = now + Math.max(leftMs, this.settings.A2A_CONTINUATION_MAX_REMOTE_WORK_MS);
    const deadlineAt = Math.min(own, lineage?.deadlineAt ?? Infinity);
    if (deadlineAt <= now)
      throw new RialtoError('remote_timeout', { message: 'the call behind this one has no time left' });
    return this.seal.seal({ depth: depth + 1, path: [...path, id], deadlineAt: Math.ceil(deadlineAt) });
  }
}
