import { randomBytes } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { canonicalJson } from '../../kernel/canonical-json.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId, type AgentId, type OrgId } from '../../kernel/ids.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import type { Tx } from '../../platform/database/tx.js';
import { isReader } from '../../protocol/a2a/media-types.js';
import { ExecutorSecrets } from '../executor-secrets.js';
import type { Definition, ExecutorConfig, LlmConfig, PublishedSource } from '../published.types.js';
import type { PublishedAgentEntity } from './published-agent.entity.js';
import { PublishedAgentStore } from './published-agent.store.js';
import { apiKeyOf, definitionOf } from './published-definition.js';
import type { ChangePublished } from './publishing.types.js';

/** A written row, and the secret that the change created. */
export interface Written {
  readonly row: PublishedAgentEntity;
  readonly secret?: string;
}

/** The definition of an agent. Its key is separate, because views of the definition must not show it. */
export interface Wanted {
  readonly definition: Definition;
  /** Key of a model: null for none, undefined to keep the stored one. */
  readonly apiKey?: string | null;
}

type WithSecret = Extract<ExecutorConfig, { kind: 'http' | 'mailbox' }>;

/** Writes the rows of published agents with the secrets of their executors. */
@Injectable()
export class PublishedWriter {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly store: PublishedAgentStore,
    private readonly secrets: ExecutorSecrets,
  ) {}

  /** Inserts an agent; call it under the lock of the org. */
  async insert(tx: Tx, orgId: OrgId, source: PublishedSource, { definition, apiKey }: Wanted): Promise<Written> {
    this.requireReachable(definition);
    const place = { id: newId<AgentId>(), orgId };
    const { secret, executorSecret } = this.secretFor(place, { definition, apiKey });
    const address = this.secrets.sealAddress(place, definition.executor);
    const row = await this.store.insert(tx, { ...place, ...definition, ...address, source, executorSecret });
    return { row, secret };
  }

  /** Changes the given members of an agent; call it under the lock of the org. */
  change(tx: Tx, row: PublishedAgentEntity, change: ChangePublished): Promise<Written> {
    const before = { ...row, executor: this.secrets.openAddress(row) };
    const definition = definitionOf(change, before);
    if (change.executor || change.a2a_accept_cleartext !== undefined) this.requireReachable(definition);
    return this.update(tx, row, { definition, apiKey: apiKeyOf(change) });
  }

  /** Updates an agent; call it under the lock of the org. It restores an archived agent. */
  private async update(tx: Tx, before: PublishedAgentEntity, { definition, apiKey }: Wanted): Promise<Written> {
    const { secret, executorSecret } = this.secretFor(before, { definition, apiKey }, before);
    const address = this.secrets.sealAddress(before, definition.executor);
    const change = { ...definition, ...address, executorSecret, archivedAt: null };
    const row = await this.store.update(tx, before.id, change);
    return { row, secret };
  }

  /** Locks the org, and archives the agents of a source with other names. */
  async archiveOthers(tx: Tx, org: OrgId, source: PublishedSource, names: ReadonlySet<string>): Promise<void> {
    await this.store.lockOrg(tx, org);
    for (const row of await this.store.findAll(org, tx))
      if (row.source === source && !names.has(row.name)) await this.store.archive(tx, row);
  }

  /** Creates or updates a declared agent when it differs; call it under the lock of the org. */
  async alignDeclared(tx: Tx, org: OrgId, source: PublishedSource, wanted: Wanted): Promise<void> {
    const { name } = wanted.definition;
    const known = await this.store.find(org, name, tx);
    const row = known?.source === source ? known : await this.store.findArchived(tx, org, name, source);
    if (!row) await this.insert(tx, org, source, wanted);
    else if (row.archivedAt || !this.isSame(row, wanted)) {
      this.requireReachable(wanted.definition);
      await this.update(tx, row, wanted);
    }
  }

  /** Throws `unprocessable` for an agent that would refuse every message: cleartext, and what it cannot decrypt. */
  private requireReachable({ executor, acceptCleartext }: Definition): void {
    if ((acceptCleartext ?? this.settings.RIALTO_A2A_ACCEPT_CLEARTEXT) || !isReader(executor)) return;
    const kind = executor.kind === 'routes' ? executor.otherwise.kind : executor.kind;
    const description = `an agent with the executor "${kind}" must accept cleartext: the gateway reads its messages`;
    const isUsual = acceptCleartext === null;
    throw new RialtoError('unprocessable', {
      message: `a2a_accept_cleartext: ${description}`,
      hint: isUsual ? 'set it to true; RIALTO_A2A_ACCEPT_CLEARTEXT is false in this deployment' : 'set it to true',
      violations: [{ field: 'a2a_accept_cleartext', description }],
    });
  }

  /** Replaces the secret of an executor. Throws `unprocessable` for an executor without one. */
  async rotateSecret(tx: Tx, row: PublishedAgentEntity): Promise<string> {
    if (!hasSecret(row.executor))
      throw new RialtoError('unprocessable', {
        message: `the executor of this agent is "${row.executor.kind}"; only http and mailbox executors have a secret`,
      });
    const { secret, executorSecret } = this.newSecret(row, row.executor);
    await this.store.update(tx, row.id, { executorSecret });
    return secret;
  }

  /**
   * Returns the secret for an executor. An executor of the same kind keeps its secret; a changed kind gets a new one,
   * if it needs one.
   */
  private secretFor(
    place: Pick<PublishedAgentEntity, 'id' | 'orgId'>,
    { definition: { executor }, apiKey }: Wanted,
    before?: PublishedAgentEntity,
  ): { secret?: string; executorSecret: string | null } {
    if (executor.kind === 'llm') return { executorSecret: this.modelKeyFor(place, executor, apiKey, before) };
    if (!hasSecret(executor)) return { executorSecret: null };
    const known = before?.executor.kind === executor.kind ? before.executorSecret : null;
    return known ? { executorSecret: known } : this.newSecret(place, executor);
  }

  /**
   * Returns the sealed key of a model. A key is valid only for the origin that it was given for. Throws
   * `unprocessable` when the origin changes and no key is given.
   */
  private modelKeyFor(
    place: Pick<PublishedAgentEntity, 'id' | 'orgId'>,
    executor: LlmConfig,
    apiKey: string | null | undefined,
    before?: PublishedAgentEntity,
  ): string | null {
    if (apiKey !== undefined) return apiKey === null ? null : this.secrets.sealSecret(place, apiKey);
    if (before?.executor.kind !== 'llm' || before.executorSecret === null) return null;
    if (new URL(before.executor.url).origin === new URL(executor.url).origin) return before.executorSecret;
    throw new RialtoError('unprocessable', {
      message: 'executor.apiKey: the stored key was given for another origin',
      hint: 'give the key for the new URL, or null for no key',
      violations: [{ field: 'executor.apiKey', description: 'is required when the origin of the URL changes' }],
    });
  }

  /** Returns whether a declaration equals the stored agent. */
  private isSame(row: PublishedAgentEntity, { definition, apiKey }: Wanted): boolean {
    const wanted = { ...definition, executor: this.secrets.withoutQuery(definition.executor).config };
    const names = Object.keys(wanted) as (keyof Definition)[];
    const isAlike = names.every((name) => canonicalJson(row[name]) === canonicalJson(wanted[name]));
    return isAlike && this.hasKey(row, apiKey);
  }

  private hasKey(row: PublishedAgentEntity, apiKey: string | null | undefined): boolean {
    if (row.executor.kind !== 'llm' || row.executorSecret === null) return !apiKey;
    return this.secrets.openSecret(row, row.executorSecret).reveal() === apiKey;
  }

  /**
   * Creates a secret. For `http`: the format of Standard Webhooks, 32 bytes in base64. For a mailbox: it contains the
   * agent id, so that the gateway finds the agent from the secret.
   */
  private newSecret(place: Pick<PublishedAgentEntity, 'id' | 'orgId'>, { kind }: WithSecret) {
    const bytes = randomBytes(32);
    const secret =
      kind === 'http' ? `whsec_${bytes.toString('base64')}` : `mbx_${place.id}_${bytes.toString('base64url')}`;
    return { secret, executorSecret: this.secrets.sealSecret(place, secret) };
  }
}

function hasSecret(executor: ExecutorConfig): executor is WithSecret {
  return executor.kind === 'http' || executor.kind === 'mailbox';
}
