import type { Client } from 'pg';
import type { Vault } from './vault.js';

interface SealedRow {
  readonly place: string;
  readonly row: string;
  readonly org: string;
  readonly sealed: string;
}

/** Opens the newest sealed value there is and names its table; undefined when nothing is sealed. Throws as the vault does. */
export async function openOneSecret(client: Pick<Client, 'query'>, vault: Vault): Promise<string | undefined> {
  // The youngest of the tables below: without it the schema is behind, which is told elsewhere.
  const made = await client.query<{ made: boolean }>(`select to_regclass('thread_answers') is not null as made`);
  if (!made.rows[0]?.made) return undefined;
  const { rows } = await client.query<SealedRow>(
    `(select 'signing_keys' as place, kid as row, 'rialto' as org, sealed from signing_keys order by created_at desc limit 1)
     union all (select 'org_secrets', id::text, org_id::text, sealed from org_secrets order by created_at desc limit 1)
     union all (select 'agent_cards', id::text, org_id::text, credential from agent_cards where credential is not null limit 1)
     union all (select 'published_agents', id::text, org_id::text, executor_secret from published_agents where executor_secret is not null limit 1)
     union all (select 'push_configs.token', task_id || '/' || id, org_id::text, token from push_configs where token is not null limit 1)
     union all (select 'thread_answers', id::text, org_id::text, token from thread_answers where token is not null limit 1)`,
  );
  for (const { place, row, org, sealed } of rows) vault.open(sealed, { table: place, row, org });
  return rows[0]?.place;
}
