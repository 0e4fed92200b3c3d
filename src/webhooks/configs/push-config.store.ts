import { Injectable } from '@nestjs/common';
import { Pg } from '../../platform/database/pg.js';
import type { RowChange, RowStatement } from '../../platform/database/row-writer.js';
import { queryIn, TxRunner, type Tx } from '../../platform/database/tx.js';
import { UrlQueries } from '../../platform/secrets/url-queries.js';
import { Vault } from '../../platform/secrets/vault.js';
import type { PushConfig, PushFormat } from '../../protocol/a2a/request/operations.js';
import type { PushState } from './push-config.entity.js';

export const maxConfigs = 10;

export interface StoredConfig extends PushConfig {
  readonly id: string;
  readonly taskId: string;
}

export type NewConfig = StoredConfig & { readonly org: string; readonly format: PushFormat };

/** `full`: the task has too many other configurations. `duplicate`: it has one with this URL. */
export type Stored = 'stored' | 'full' | 'duplicate';

/** Checks a configuration in the transaction that stores it. */
export type Admission = (tx: Tx) => Promise<void>;

/** The columns of a configuration; its secrets are sealed. */
export interface SealedConfig {
  readonly taskId: string;
  readonly id: string;
  readonly orgId: string;
  readonly url: string;
  readonly token: string | null;
  readonly authentication: string | null;
}

const columns = 'task_id, id, org_id, url, token, authentication, format';
const selected = 'task_id as "taskId", id, org_id as "orgId", url, token, authentication, format';
/**
 * Older versions of A2A store a configuration without an id under the id of its task; a request without an id means
 * that one.
 */
const unnamedFirst = '(id = task_id::text) desc, created_at, id';
/**
 * A channel that is dead for a run stays dead for the rest of the run, even when the same address is given again
 * (RY-36).
 */
const staysDead = `push_configs.reason = 'dead' and push_configs.url = excluded.url`;
const upsert = `
  on conflict (task_id, id) do update
  set url = excluded.url, token = excluded.token, authentication = excluded.authentication, format = excluded.format,
    state = case when ${staysDead} then push_configs.state else 'active' end,
    reason = case when ${staysDead} then push_configs.reason end,
    failing_since = case when ${staysDead} then push_configs.failing_since end`;

const otherUrls = `
  select count(distinct c.url)::int as count
  from push_configs c
  join a2a_tasks t on t.id = c.task_id
  where c.org_id = :org and t.agent_id = :agent and c.url <> :url`;

/**
 * Inserts a configuration that is sent with a message. One above the limit is left out without an error, because the
 * message itself is already accepted.
 */
const insertConfigs: RowStatement = {
  name: 'push-config',
  sql: (rows) => `
    insert into push_configs (${columns})
    select ${columns}
    from jsonb_to_recordset(${rows}) as r(
      task_id uuid, id text, org_id uuid, url text, token text, authentication text, format text)
    where (select count(*) from push_configs c where c.task_id = r.task_id and c.id <> r.id) < ${maxConfigs} ${upsert}`,
};

/** The sealed parts of a configuration beside its token. */
type SealedParts = Partial<NonNullable<PushConfig['authentication']>> & { readonly query?: string };

/** Stores push configurations; seals tokens, credentials and the queries of URLs. */
@Injectable()
export class PushConfigStore {
  private readonly queries: UrlQueries;

  constructor(
    private readonly pg: Pg,
    private readonly vault: Vault,
    private readonly txs: TxRunner,
  ) {
    this.queries = new UrlQueries(vault);
  }

  rowOf(config: NewConfig): RowChange {
    const { taskId, orgId, ...others } = this.sealConfig(config);
    return { statement: insertConfigs, row: { task_id: taskId, org_id: orgId, ...others } };
  }

  /** Adds or replaces a configuration. `admit` throws when it may not be stored. */
  put(config: NewConfig, admit: Admission): Promise<Stored> {
    return this.txs.run(async (tx) => {
      await admit(tx);
      await lockTask(tx, config.taskId);
      return this.upsert(tx, config);
    });
  }

  /** Adds a configuration, unless the task has one with this URL. `admit` throws when it may not be stored. */
  add(config: NewConfig, admit: Admission): Promise<Stored> {
    return this.txs.run(async (tx) => {
      await admit(tx);
      await lockTask(tx, config.taskId);
      return (await this.hasUrl(tx, config)) ? 'duplicate' : this.upsert(tx, config);
    });
  }

  /** Counts the different URLs, except one, that the tasks of an agent post to. */
  async countOtherUrls(org: string, agent: string, url: string, tx?: Tx): Promise<number> {
    const params = { org, agent, url: this.queries.hide(url).url };
    const [row] = tx
      ? await queryIn<{ count: number }[]>(tx, otherUrls, params)
      : await this.pg.rows<{ count: number }>('push-config-urls', otherUrls, params);
    return row!.count;
  }

  private async hasUrl(tx: Tx, { taskId, url }: NewConfig): Promise<boolean> {
    const rows = await queryIn<unknown[]>(tx, 'select from push_configs where task_id = :taskId and url = :url', {
      taskId,
      url: this.queries.hide(url).url,
    });
    return rows.length > 0;
  }

  /** Adds or replaces a configuration. Waiting deliveries of a replaced one go to the new URL at once. */
  private async upsert(tx: Tx, config: NewConfig): Promise<Stored> {
    const sealed = this.sealConfig(config);
    const rows = await queryIn<unknown[]>(
      tx,
      `
      insert into push_configs (${columns})
      select :taskId, :id, :orgId, :url, :token, :authentication, :format
      where (select count(*) from push_configs c where c.task_id = :taskId and c.id <> :id) < ${maxConfigs} ${upsert}
      returning id`,
      { ...sealed },
    );
    const { taskId, id } = sealed;
    await queryIn(
      tx,
      `
      update webhook_deliveries
      set body = null, next_at = now()
      where task_id = :taskId and config_id = :id and status = 'pending' and (body is not null or next_at > now())
        and lease_until is null`,
      { taskId, id },
    );
    return rows.length === 1 ? 'stored' : 'full';
  }

  /** Finds a configuration; without an id the unnamed one, else the oldest. */
  async find(taskId: string, id?: string): Promise<StoredConfig | undefined> {
    const [row] = await this.pg.rows<SealedConfig>(
      'push-config-find',
      `
      select ${selected}
      from push_configs
      where task_id = :taskId and (:id::text is null or id = :id)
      order by ${unnamedFirst}
      limit 1`,
      { taskId, id: id ?? null },
    );
    return row && this.openConfig(row);
  }

  async stateOf(taskId: string, id: string): Promise<{ state: PushState; reason: string | null } | undefined> {
    const [row] = await this.pg.rows<{ state: PushState; reason: string | null }>(
      'push-config-state',
      'select state, reason from push_configs where task_id = :taskId and id = :id',
      { taskId, id },
    );
    return row;
  }

  /** Configurations of a task, oldest first, one more than `limit` when there are more, each with its position. */
  async findPage(
    taskId: string,
    limit: number,
    after: readonly string[] = [],
  ): Promise<{ config: StoredConfig; at: string }[]> {
    const [afterAt = null, afterId = null] = after;
    const rows = await this.pg.rows<SealedConfig & { at: string }>(
      'push-config-page',
      `
      select ${selected}, to_char(created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at
      from push_configs
      where task_id = :taskId
        and (:afterAt::text is null or (created_at, id) > (:afterAt::text::timestamptz, :afterId::text))
      order by created_at, id
      limit :limit`,
      { taskId, afterAt, afterId, limit: limit + 1 },
    );
    return rows.map((row) => ({ config: this.openConfig(row), at: row.at }));
  }

  /** Deletes a configuration and skips its waiting deliveries. Without an id the unnamed one, else the oldest. */
  async remove(taskId: string, id?: string): Promise<void> {
    await this.pg.rows(
      'push-config-remove',
      `
      with gone as (
        delete from push_configs
        where task_id = :taskId and id = (
          select id
          from push_configs
          where task_id = :taskId and (:id::text is null or id = :id)
          order by ${unnamedFirst}
          limit 1
        )
        returning id
      )
      update webhook_deliveries d
      set status = 'skipped', last_error = 'deleted', lease_owner = null, lease_until = null, ended_at = now()
      from gone
      where d.task_id = :taskId and d.config_id = gone.id and d.status = 'pending'`,
      { taskId, id: id ?? null },
    );
  }

  /** Opens the secrets of a row. Throws `unavailable` and `internal` as the vault does. */
  openConfig(row: SealedConfig): StoredConfig {
    const opened = (column: 'token' | 'authentication'): string | undefined =>
      row[column] === null ? undefined : this.vault.open(row[column], sealPlace(row, column)).reveal();
    const [token, parts] = [opened('token'), opened('authentication')];
    const { query, scheme, ...credentials } = (parts === undefined ? {} : JSON.parse(parts)) as SealedParts;
    return {
      id: row.id,
      taskId: row.taskId,
      url: UrlQueries.whole({ url: row.url, query }),
      ...(token !== undefined && { token }),
      ...(scheme !== undefined && { authentication: { scheme, ...credentials } }),
    };
  }

  private sealConfig({
    taskId,
    id,
    org,
    token,
    authentication,
    format,
    ...config
  }: NewConfig): SealedConfig & { format: PushFormat } {
    const owner = { taskId, id, orgId: org };
    const sealed = (column: 'token' | 'authentication', plain: string | undefined): string | null =>
      plain === undefined ? null : this.vault.seal(plain, sealPlace(owner, column));
    const { url, query } = this.queries.hide(config.url);
    const parts: SealedParts = { ...authentication, query };
    const isPlain = authentication === undefined && query === undefined;
    return {
      ...owner,
      url,
      token: sealed('token', token),
      authentication: sealed('authentication', isPlain ? undefined : JSON.stringify(parts)),
      format,
    };
  }
}

/** Serializes changes of the configurations of one task. */
async function lockTask(tx: Tx, taskId: string): Promise<void> {
  await queryIn(tx, `select pg_advisory_xact_lock(hashtextextended('push:' || :taskId::text, 0))`, { taskId });
}

/** The place of a sealed value, which the vault binds it to. */
function sealPlace({ taskId, id, orgId }: Pick<SealedConfig, 'taskId' | 'id' | 'orgId'>, column: string) {
  return { table: `push_configs.${column}`, row: `${taskId}/${id}`, org: orgId };
}
