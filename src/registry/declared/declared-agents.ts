import { Inject, Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import type { OrgId } from '../../kernel/ids.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { isUniqueViolation } from '../../platform/database/pg.js';
import { TxRunner, type Tx } from '../../platform/database/tx.js';
import { invalidBody } from '../../platform/http/request-checks.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { AgentWriter } from '../admin/agent-writer.js';
import { baseUrlOf } from '../refresh/card-fetcher.js';
import { AgentStore } from '../agents/agent.store.js';
import { RegisterAgent } from '../registry.types.js';

/**
 * Reconciles the agents of `rialto.config.json`: creates missing ones, updates changed ones, removes ones that are no
 * longer declared.
 */
@Injectable()
export class DeclaredAgents {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly store: AgentStore,
    private readonly writer: AgentWriter,
    private readonly txs: TxRunner,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Applies the file. It is idempotent: several runs, also in parallel processes, give the same rows. */
  async reconcile(org: OrgId): Promise<void> {
    const declared = new Map(this.settings.configFile.agents.map((agent) => [baseUrlOf(agent.url), agent]));
    await this.withLock(async (tx) => {
      const rows = await this.store.findAll(org);
      for (const row of rows.filter(({ source, url }) => source === 'config' && !declared.has(url)))
        await this.store.delete(tx, row);
    });
    for (const [url, agent] of declared) {
      try {
        await this.withLock((tx) => this.align(tx, org, url, accepted(agent)));
      } catch (error) {
        const known = isUniqueViolation(error) ? new RialtoError('slug_taken') : RialtoError.from(error);
        if (known.code === 'internal') throw known;
        this.log.error({ url, code: known.code }, `a declared agent was skipped: ${known.message}`);
      }
    }
  }

  private withLock(work: (tx: Tx) => Promise<void>): Promise<void> {
    return this.txs.run(async (tx) => {
      await this.store.lockDeclarations(tx);
      await work(tx);
    });
  }

  private async align(tx: Tx, org: OrgId, url: string, wanted: RegisterAgent): Promise<void> {
    const row = (await this.store.findAll(org)).find((known) => known.url === url);
    await (row ? this.writer.alignDeclared(tx, row, wanted) : this.writer.insertDeclared(tx, org, wanted));
  }
}

/** Throws `invalid_params` when the API would refuse the agent. */
function accepted(agent: unknown): RegisterAgent {
  const checked = RegisterAgent.safeParse(agent);
  if (!checked.success) throw invalidBody(checked.error.issues);
  return checked.data;
}
