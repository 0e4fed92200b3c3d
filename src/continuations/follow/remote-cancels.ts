import { Injectable } from '@nestjs/common';
import { A2AClientService } from '../../a2a-client/a2a-client.service.js';
import { OrgDirectory } from '../../policy/org-directory.js';
import { canonicalName } from '../../protocol/mcp/tool-names.js';
import { RegistryService } from '../../registry/registry.service.js';
import { UpstreamTasks } from '../../upstreams/upstream-tasks.js';
import { ContinuationUpdates } from './continuation-updates.js';
import type { Orphan } from '../storage/continuation.store.js';

/** Cancels remote tasks of tasks that ended here while the remote task still ran, on behalf of the original caller. */
@Injectable()
export class RemoteCancels {
  constructor(
    private readonly client: A2AClientService,
    private readonly registry: RegistryService,
    private readonly tools: UpstreamTasks,
    private readonly orgs: OrgDirectory,
    private readonly updates: ContinuationUpdates,
  ) {}

  /**
   * Cancels the remote task. Throws `not_found` when the agent or the MCP server is no longer registered, and the
   * errors of the cancel request.
   */
  async cancelRemote({ orgId, agentId, id, taskId, remoteTaskId, principal }: Orphan): Promise<void> {
    const [{ byId }, org] = await Promise.all([this.registry.snapshot(orgId), this.orgs.byId(orgId)]);
    if (!org) return;
    const ctx = { org, principal, surface: 'system', requestId: id, depth: 0 } as const;
    const { pollTimeoutMs: timeoutMs } = this.updates;
    const agent = byId.get(agentId);
    if (!agent) return this.tools.cancel(ctx, { server: agentId, taskId: remoteTaskId }, { timeoutMs });
    const skillId = agent.card?.skills[0]?.id ?? 'chat';
    const verb = canonicalName(agent.row.slug, skillId);
    await this.client.cancel(ctx, { agent, skillId, verb, sessionId: taskId, taskId: remoteTaskId, timeoutMs });
  }
}
