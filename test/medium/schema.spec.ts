import pg from 'pg';
import { entities } from '../../src/entities.js';
import { createDataSource, migrateDatabase, migrations, schemaState } from '../../src/platform/database/migrate.js';
import { asAdmin, runPrefix } from '../support/gateway/admin.js';

describe('the schema', () => {
  const name = `${runPrefix()}schema_${Math.random().toString(36).slice(2)}`;
  let url: string;

  beforeAll(async () => {
    await asAdmin(async (client) => void (await client.query(`create database "${name}"`)));
    const named = new URL(process.env.RIALTO_TEST_ADMIN_URL!);
    named.pathname = `/${name}`;
    url = named.href;
  });

  afterAll(() =>
    asAdmin(async (client) => void (await client.query(`drop database if exists "${name}" with (force)`))),
  );

  it('migrates an empty database, by several processes at once, and again without effect', async () => {
    expect(await schemaState(url)).toMatchObject({ applied: 0, needed: migrations.length });
    await Promise.all([migrateDatabase(url), migrateDatabase(url), migrateDatabase(url)]);
    await migrateDatabase(url);
    expect(await schemaState(url)).toMatchObject({ applied: migrations.length, needed: migrations.length });
  });

  it('matches the entities: the schema builder has nothing to change', async () => {
    const dataSource = await createDataSource(url, entities).initialize();
    try {
      const log = await dataSource.driver.createSchemaBuilder().log();
      expect(log.upQueries.map(({ query }) => query)).toEqual([]);
    } finally {
      await dataSource.destroy();
    }
  });

  it('has an entity for every table of the gateway', async () => {
    const dataSource = createDataSource(url, entities);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      await dataSource.initialize();
      const { rows } = await client.query<{ name: string }>(
        `select table_name as name
         from information_schema.tables
         where table_schema = 'public' and table_name <> 'schema_migrations'
         order by 1`,
      );
      const known = dataSource.entityMetadatas.map(({ tableName }) => tableName).sort();
      expect(rows.map((row) => row.name)).toEqual(known);
    } finally {
      await client.end();
      await dataSource.destroy();
    }
  });

  it('finds a column that only the table or only the entity has', async () => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query('alter table orgs add column forgotten text');
    await client.end();
    const dataSource = await createDataSource(url, entities).initialize();
    const log = await dataSource.driver.createSchemaBuilder().log();
    await dataSource.destroy();
    expect(log.upQueries.map(({ query }) => query)).toEqual([expect.stringContaining('forgotten')]);
  });
});
