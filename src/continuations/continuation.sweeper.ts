import { Inject, Injectable } from '@nestjs/common';
import { A2AClientService } from '../a2a-client/a2a-client.service.js';
import { RialtoError } from '../kernel/errors.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { Sweeps, type Sweeper } from '../platform/jobs/handles-job.decorator.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { OrgDirectory } from '../policy/auth/org-directory.service.js';
import { canonicalName } from '../protocol/mcp/tool-names.js';
import { RegistryService } from '../registry/registry.service.js';
import { isPassing } from './continuation-plan.js';
import { ContinuationStore, type Orphan } from './continuation.store.js';

/** As agent-native has them (AN-76). */
const perSweep = 200;
/** Whoever ends a task tells its remote at once; this is for what they could not tell. */
const graceMs = 5_000;

/** Tells remotes of tasks that ended here without them. */
@Injectable()
@Sweeps('continuation.orphans')
export class ContinuationSweeper implements Sweeper {
  readonly everyMs = 5_000;

  constructor(
    private readonly store: ContinuationStore,
    private readonly client: A2AClientService,
    private readonly registry: RegistryService,
    private readonly orgs: OrgDirectory,
    @Inject(SETTINGS) private readonly settings: Settings,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  async sweep(): Promise<void> {
    const orphans = await this.store.takeOrphans(perSweep, graceMs);
    await Promise.all(orphans.map((orphan) => this.finish(orphan)));
  }

  private async finish(orphan: Orphan): Promise<void> {
    const { id, taskId, remoteTaskId, attempts } = orphan;
    try {
      await this.tellToStop(orphan);
    } catch (err) {
      if (isPassing(err) && attempts < this.settings.A2A_CONTINUATION_MAX_ATTEMPTS) return;
      this.log.info({ err, continuationId: id, taskId }, 'a remote task was not canceled');
      return this.store.close(taskId, remoteTaskId, 'failed', RialtoError.from(err).code);
    }
    await this.store.close(taskId, remoteTaskId, 'completed');
  }

  private async tellToStop({ orgId, agentId, id, taskId, remoteTaskId, principal }: Orphan): Promise<void> {
    const [{ byId }, org] = await Promise.all([this.registry.snapshot(orgId), this.orgs.byId(orgId)]);
    const agent = byId.get(agentId);
    if (!agent || !org) return;
    const ctx = { org, principal, surface: 'system', requestId: id, depth: 0 } as const;
    const skillId = agent.card?.skills[0]?.id ?? 'chat';
    const verb = canonicalName(agent.row.slug, skillId);
    const timeoutMs = this.settings.A2A_CONTINUATION_POLL_TIMEOUT_MS;
    await this.client.cancel(ctx, { agent, skillId, verb, sessionId: taskId, taskId: remoteTaskId, timeoutMs });
  }
}
