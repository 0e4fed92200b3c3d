import { isDeepStrictEqual } from 'node:util';
import { Inject, Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import type { OrgId } from '../../kernel/ids.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { isUniqueViolation } from '../../platform/database/pg.js';
import { TxRunner, type Tx } from '../../platform/database/tx.js';
import { invalidBody } from '../../platform/http/request-checks.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { AgentCredentials } from '../agent-credentials.js';
import type { AgentEntity } from '../agents/agent.entity.js';
import { baseUrlOf } from '../refresh/card-fetcher.js';
import { AgentStore } from '../agents/agent.store.js';
import { RegistryService } from '../registry.service.js';
import { RegisterAgent } from '../registry.types.js';

const reconcileLock = 7_262_914;

/**
 * Reconciles the agents of `rialto.config.json`: creates missing ones, updates changed ones, removes ones that are no
 * longer declared.
 */
@Injectable()
export class DeclaredAgents {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly store: AgentStore,
    private readonly registry: RegistryService,
    private readonly credentials: AgentCredentials,
    private readonly txs: TxRunner,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Applies the file. It is idempotent: several runs, also in parallel processes, give the same rows. */
  async reconcile(org: OrgId): Promise<void> {
    const declared = new Map(this.settings.configFile.agents.map((agent) => [baseUrlOf(agent.url), agent]));
    await this.locked(async (tx) => {
      const rows = await this.store.findAll(org);
      for (const row of rows.filter(({ source, url }) => source === 'config' && !declared.has(url)))
        await this.store.delete(tx, row.id);
    });
    for (const [url, agent] of declared) {
      try {
        await this.locked((tx) => this.align(tx, org, url, accepted(agent)));
      } catch (error) {
        const known = isUniqueViolation(error) ? new RialtoError('slug_taken') : RialtoError.from(error);
        if (known.code === 'internal') throw known;
        this.log.error({ url, code: known.code }, `a declared agent was skipped: ${known.message}`);
      }
    }
  }

  private locked(work: (tx: Tx) => Promise<void>): Promise<void> {
    return this.txs.run(async (tx) => {
      await tx.manager.query('select pg_advisory_xact_lock($1)', [reconcileLock]);
      await work(tx);
    });
  }

  private async align(tx: Tx, org: OrgId, url: string, wanted: RegisterAgent): Promise<void> {
    const row = (await this.store.findAll(org)).find((known) => known.url === url);
    if (!row) return this.registry.declare(tx, org, wanted);
    const { slug = row.slug, trustLevel, timeoutMs = null, credential = null } = wanted;
    const plain = { slug, trustLevel, timeoutMs };
    const sealed = isDeepStrictEqual(this.storedCredential(row), credential)
      ? {}
      : this.credentials.seal(row, credential);
    const same = row.slug === slug && row.trustLevel === trustLevel && row.timeoutMs === timeoutMs;
    if (!same || Object.keys(sealed).length > 0) await this.store.update(tx, row.id, { ...plain, ...sealed }, true);
  }

  /**
   * Returns the credential of a row, null for none; undefined when it cannot be opened, so that the caller seals it
   * again.
   */
  private storedCredential(row: AgentEntity): unknown {
    try {
      return this.credentials.open(row) ?? null;
    } catch {
      return undefined;
    }
  }
}

/** Throws `invalid_params` when the API would refuse the agent. */
function accepted(agent: unknown): RegisterAgent {
  const checked = RegisterAgent.safeParse(agent);
  if (!checked.success) throw invalidBody(checked.error.issues);
  return checked.data;
}
