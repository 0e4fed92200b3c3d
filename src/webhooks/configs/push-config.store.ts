import { Injectable } from '@nestjs/common';
import { Pg } from '../../platform/database/pg.js';
import type { RowChange, RowStatement } from '../../platform/database/row-writer.js';
import type { Tx } from '../../platform/database/tx.js';
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

/** The columns of a configuration; its secrets are sealed. */
export interface SealedConfig {
  readonly task_id: string;
  readonly id: string;
  readonly org_id: string;
  readonly url: string;
  readonly token: string | null;
  readonly authentication: string | null;
}

type PageRow = SealedConfig & { at: string };

const columns = 'task_id, id, org_id, url, token, authentication, format';
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
const upsert = `on conflict (task_id, id) do update set url = excluded.url, token = excluded.token,
  authentication = excluded.authentication, format = excluded.format, 
  state = case when ${staysDead} then push_configs.state else 'active' end, reason = case when ${staysDead} then push_configs.reason end,
  failing_since = case when ${staysDead} then push_configs.failing_since end`;

/**
 * Inserts a configuration that is sent with a message. One above the limit is left out without an error, because the
 * message itself is already accepted.
 */
const insertConfigs: RowStatement = {
  name: 'push-config',
  sql: (rows) => `insert into push_configs (${columns}) select ${columns} from jsonb_to_recordset(${rows}) as r(
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
  ) {
    this.queries = new UrlQueries(vault);
  }

  rowOf(config: NewConfig): RowChange {
    return { statement: insertConfigs, row: this.seal(config) };
  }

  /** Serializes changes of the configurations of one task. */
  async lock(tx: Tx, taskId: string): Promise<void> {
    await tx.manager.query(`select pg_advisory_xact_lock(hashtextextended('push:' || $1::text, 0))`, [taskId]);
  }

  /** True when a task has a configuration with this URL. */
  async has(tx: Tx, taskId: string, url: string): Promise<boolean> {
    const rows: unknown[] = await tx.manager.query('select from push_configs where task_id = $1 and url = $2', [
      taskId,
      this.queries.hide(url).url,
    ]);
    return rows.length > 0;
  }

  /**
   * Adds or replaces a configuration; call it under the lock of the task. Returns false when the task has too many
   * others. Waiting deliveries of a replaced one go to the new URL at once.
   */
  async put(tx: Tx, config: NewConfig): Promise<boolean> {
    const { task_id, id, org_id, url, token, authentication, format } = this.seal(config);
    const rows: unknown[] = await tx.manager.query(
      `insert into push_configs (${columns}) select $1, $2, $3, $4, $5, $6, $7
       where (select count(*) from push_configs c where c.task_id = $1 and c.id <> $2) < ${maxConfigs} ${upsert} returning id`,
      [task_id, id, org_id, url, token, authentication, format],
    );
    await tx.manager.query(
      `update webhook_deliveries set body = null, next_at = now()
       where task_id = $1 and config_id = $2 and status = 'pending' and (body is not null or next_at > now()) and lease_until is null`,
      [task_id, id],
    );
    return rows.length === 1;
  }

  /** Finds a configuration; without an id the unnamed one, else the oldest. */
  async find(taskId: string, id?: string): Promise<StoredConfig | undefined> {
    const [row] = await this.pg.rows<SealedConfig>(
      'push-config-find',
      `select ${columns} from push_configs where task_id = $1 and ($2::text is null or id = $2) order by ${unnamedFirst} limit 1`,
      [taskId, id ?? null],
    );
    return row && this.open(row);
  }

  async stateOf(taskId: string, id: string): Promise<{ state: PushState; reason: string | null } | undefined> {
    const [row] = await this.pg.rows<{ state: PushState; reason: string | null }>(
      'push-config-state',
      'select state, reason from push_configs where task_id = $1 and id = $2',
      [taskId, id],
    );
    return row;
  }

  /** Configurations of a task, oldest first, one more than `limit` when there are more, each with its position. */
  async page(
    taskId: string,
    limit: number,
    after: readonly string[] = [],
  ): Promise<{ config: StoredConfig; at: string }[]> {
    const rows = await this.pg.rows<PageRow>(
      'push-config-page',
      `select ${columns}, to_char(created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at from push_configs
       where task_id = $1 and ($2::text is null or (created_at, id) > ($2::text::timestamptz, $3::text)) order by created_at, id limit $4`,
      [taskId, after[0] ?? null, after[1] ?? null, limit + 1],
    );
    return rows.map((row) => ({ config: this.open(row), at: row.at }));
  }

  /** Deletes a configuration and skips its waiting deliveries. Without an id the unnamed one, else the oldest. */
  async remove(taskId: string, id?: string): Promise<void> {
    await this.pg.rows(
      'push-config-remove',
      `with gone as (delete from push_configs where task_id = $1 and id = (
         select id from push_configs where task_id = $1 and ($2::text is null or id = $2) order by ${unnamedFirst} limit 1) returning id)
       update webhook_deliveries d set status = 'skipped', last_error = 'deleted', lease_owner = null, lease_until = null, ended_at = now()
       from gone where d.task_id = $1 and d.config_id = gone.id and d.status = 'pending'`,
      [taskId, id ?? null],
    );
  }

  /** Opens the secrets of a row. Throws `unavailable` and `internal` as the vault does. */
  open(row: SealedConfig): StoredConfig {
    const opened = (column: 'token' | 'authentication'): string | undefined =>
      row[column] === null ? undefined : this.vault.open(row[column], placeOf(row, column)).reveal();
    const [token, parts] = [opened('token'), opened('authentication')];
    const { query, scheme, ...credentials } = (parts === undefined ? {} : JSON.parse(parts)) as SealedParts;
    return {
      id: row.id,
      taskId: row.task_id,
      url: UrlQueries.whole({ url: row.url, query }),
      ...(token !== undefined && { token }),
      ...(scheme !== undefined && { authentication: { scheme, ...credentials } }),
    };
  }

  private seal({
    taskId,
    id,
    org,
    token,
    authentication,
    format,
    ...config
  }: NewConfig): SealedConfig & { format: PushFormat } {
    const owner = { task_id: taskId, id, org_id: org };
    const sealed = (column: 'token' | 'authentication', plain: string | undefined): string | null =>
      plain === undefined ? null : this.vault.seal(plain, placeOf(owner, column));
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

function placeOf({ task_id, id, org_id }: Pick<SealedConfig, 'task_id' | 'id' | 'org_id'>, column: string) {
  return { table: `push_configs.${column}`, row: `${task_id}/${id}`, org: org_id };
}
