import { PoolClient } from './pool-client.js';
import { positional } from './sql.js';
import { assertSchemaCompatibility, LATEST_SCHEMA_VERSION, runMigrations as runQueueMigrations } from 'bullmq';
import pg from 'pg';
import { readJson } from './long-json.js';
import { DataSource, type EntityTarget, type ObjectLiteral } from 'typeorm';
import { CreateGateway1763769600000 } from '../../../migrations/1763769600000-CreateGateway.js';
import { CreatePublishedAgents1763856000000 } from '../../../migrations/1763856000000-CreatePublishedAgents.js';
import { CreateTasks1763856100000 } from '../../../migrations/1763856100000-CreateTasks.js';
import { CreateWebhooks1763856200000 } from '../../../migrations/1763856200000-CreateWebhooks.js';
import { KeepTasksInline1763856300000 } from '../../../migrations/1763856300000-KeepTasksInline.js';
import { CompleteWebhooks1763856400000 } from '../../../migrations/1763856400000-CompleteWebhooks.js';
import { KeepDispatches1763856500000 } from '../../../migrations/1763856500000-KeepDispatches.js';
import { CreateContinuations1763856600000 } from '../../../migrations/1763856600000-CreateContinuations.js';
import { KeepLineage1763856700000 } from '../../../migrations/1763856700000-KeepLineage.js';
import { RememberPurgedOrgs1763856800000 } from '../../../migrations/1763856800000-RememberPurgedOrgs.js';
import { KeepStatesOfPushConfigs1763856900000 } from '../../../migrations/1763856900000-KeepStatesOfPushConfigs.js';
import { RememberPushes1763856950000 } from '../../../migrations/1763856950000-RememberPushes.js';
import { KeepThreadAnswers1763856960000 } from '../../../migrations/1763856960000-KeepThreadAnswers.js';
import { KeepDueTasksByOrg1763857000000 } from '../../../migrations/1763857000000-KeepDueTasksByOrg.js';
import { LeaveRoomInHotRows1763857100000 } from '../../../migrations/1763857100000-LeaveRoomInHotRows.js';
import { JudgeByTheDatabaseClock1763857200000 } from '../../../migrations/1763857200000-JudgeByTheDatabaseClock.js';
import { KeepMcpServers1763857300000 } from '../../../migrations/1763857300000-KeepMcpServers.js';
import { KnowMcpClients1763857400000 } from '../../../migrations/1763857400000-KnowMcpClients.js';
import { DeclareMcpServers1763857500000 } from '../../../migrations/1763857500000-DeclareMcpServers.js';
import { CountToolCalls1763857600000 } from '../../../migrations/1763857600000-CountToolCalls.js';
import { PinToolDefinitions1763857700000 } from '../../../migrations/1763857700000-PinToolDefinitions.js';
import { KeepUserCredentials1763857800000 } from '../../../migrations/1763857800000-KeepUserCredentials.js';
import { KeepSessionsByOwner1763857900000 } from '../../../migrations/1763857900000-KeepSessionsByOwner.js';
import { ChainAuditCheckpoints1763858000000 } from '../../../migrations/1763858000000-ChainAuditCheckpoints.js';
import { PinCardKeys1763858100000 } from '../../../migrations/1763858100000-PinCardKeys.js';
import { NameErasOfServers1763858200000 } from '../../../migrations/1763858200000-NameErasOfServers.js';
import { AddOrgDomains1763858300000 } from '../../../migrations/1763858300000-AddOrgDomains.js';
import { SealCardQueries1763858400000 } from '../../../migrations/1763858400000-SealCardQueries.js';
import { SealExecutorQueries1763858500000 } from '../../../migrations/1763858500000-SealExecutorQueries.js';
import { KeepEventsOfOneCommit1763858600000 } from '../../../migrations/1763858600000-KeepEventsOfOneCommit.js';
import { CreateApprovals1763858650000 } from '../../../migrations/1763858650000-CreateApprovals.js';
import { AddTrustTiers1763858700000 } from '../../../migrations/1763858700000-AddTrustTiers.js';
import { KeepTrustTiers1763859100000 } from '../../../migrations/1763859100000-KeepTrustTiers.js';
import { KeepEncryptionKeys1763859200000 } from '../../../migrations/1763859200000-KeepEncryptionKeys.js';
import { KeepTaskReports1763859250000 } from '../../../migrations/1763859250000-KeepTaskReports.js';
import { RefuseEarlierSealers1763859400000 } from '../../../migrations/1763859400000-RefuseEarlierSealers.js';
import { SealPersonalFacts1763859300000 } from '../../../migrations/1763859300000-SealPersonalFacts.js';
import { StampCheckpoints1763859500000 } from '../../../migrations/1763859500000-StampCheckpoints.js';
import { KeepAttemptsOfApprovals1763859600000 } from '../../../migrations/1763859600000-KeepAttemptsOfApprovals.js';
import { RialtoError } from '../../kernel/errors.js';
import type { Settings } from '../config/settings.js';
import { PatientPool } from '../library-internals/patient-pool.js';

/** Every migration, in order. A new migration is a file in `migrations/` and an entry here. */
export const migrations = [
  CreateGateway1763769600000,
  CreatePublishedAgents1763856000000,
  CreateTasks1763856100000,
  CreateWebhooks1763856200000,
  KeepTasksInline1763856300000,
  CompleteWebhooks1763856400000,
  KeepDispatches1763856500000,
  CreateContinuations1763856600000,
  KeepLineage1763856700000,
  RememberPurgedOrgs1763856800000,
  KeepStatesOfPushConfigs1763856900000,
  RememberPushes1763856950000,
  KeepThreadAnswers1763856960000,
  KeepDueTasksByOrg1763857000000,
  LeaveRoomInHotRows1763857100000,
  JudgeByTheDatabaseClock1763857200000,
  KeepMcpServers1763857300000,
  KnowMcpClients1763857400000,
  DeclareMcpServers1763857500000,
  CountToolCalls1763857600000,
  PinToolDefinitions1763857700000,
  KeepUserCredentials1763857800000,
  KeepSessionsByOwner1763857900000,
  ChainAuditCheckpoints1763858000000,
  PinCardKeys1763858100000,
  NameErasOfServers1763858200000,
  AddOrgDomains1763858300000,
  SealCardQueries1763858400000,
  SealExecutorQueries1763858500000,
  KeepEventsOfOneCommit1763858600000,
  CreateApprovals1763858650000,
  AddTrustTiers1763858700000,
  KeepTrustTiers1763859100000,
  KeepEncryptionKeys1763859200000,
  KeepTaskReports1763859250000,
  SealPersonalFacts1763859300000,
  RefuseEarlierSealers1763859400000,
  StampCheckpoints1763859500000,
  KeepAttemptsOfApprovals1763859600000,
];

/** Advisory lock that serializes the migrations of processes that start at the same time. */
const migrationLock = 7_262_911;
/** Connections for TypeORM and the hot statements. With queues, notices and locks a process stays under 25. */
const poolSize = 10;

const jsonTypes = new Set<number>([pg.types.builtins.JSON, pg.types.builtins.JSONB]);

/** Returns the parser of a column. */
function getTypeParser(type: number, format?: 'text' | 'binary'): unknown {
  return jsonTypes.has(type) && format !== 'binary' ? readJson : pg.types.getTypeParser(type, format);
}

/** Makes the data source of the application and of the migration command. */
export function createDataSource(
  url: string,
  entities: EntityTarget<ObjectLiteral>[],
  Client: typeof PoolClient = PoolClient,
): DataSource {
  return new DataSource({
    type: 'postgres',
    url,
    driver: { Pool: PatientPool },
    entities: entities as never[],
    migrations,
    migrationsTableName: 'schema_migrations',
    poolSize,
    connectTimeoutMS: 5_000,
    applicationName: 'rialto',
    logger: 'debug', // the default logger always prints a failed migration on standard output
    // Ends a statement before the client regards its connection as dead.
    extra: { keepAlive: true, statement_timeout: 15_000, types: { getTypeParser }, Client },
  });
}

/**
 * Migrates a database to this version: the tables of the gateway and of the queue. Several processes may call it at
 * once.
 */
export async function migrateDatabase(url: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(positional('select pg_advisory_lock(:key)', { key: migrationLock }));
    const dataSource = createDataSource(url, []);
    try {
      await dataSource.initialize();
      await dataSource.runMigrations({ transaction: 'each' });
      await runQueueMigrations(client);
    } finally {
      if (dataSource.isInitialized) await dataSource.destroy();
      await client.query(positional('select pg_advisory_unlock(:key)', { key: migrationLock }));
    }
  });
}

export interface SchemaState {
  /** Number of migrations that the database has, and that this version needs. */
  readonly applied: number;
  readonly needed: number;
  /** True when the queue's own tables are current. Only queues in PostgreSQL use them. */
  readonly queue: boolean;
}

export async function schemaState(url: string): Promise<SchemaState> {
  return withClient(url, async (client) => {
    const table = await client.query<{ found: boolean }>(
      `select to_regclass('schema_migrations') is not null as found`,
    );
    if (!table.rows[0]?.found) return { applied: 0, needed: migrations.length, queue: false };
    const names = await client.query<{ name: string }>('select name from schema_migrations');
    const known = new Set(migrations.map((migration) => migration.name));
    const applied = names.rows.filter((row) => known.has(row.name)).length;
    const queueVersion = await assertSchemaCompatibility(client as never).catch(() => 0);
    return { applied, needed: migrations.length, queue: queueVersion >= LATEST_SCHEMA_VERSION };
  });
}

/**
 * Makes sure that the schema is current: in development it migrates, in production `rialto db migrate` does that.
 * Throws `unavailable` with one line that says what to do.
 */
export async function requireSchema(settings: Settings, url: string): Promise<void> {
  let state = await schemaState(url);
  if (!settings.production && (state.applied < state.needed || !state.queue)) {
    await migrateDatabase(settings.RIALTO_DATABASE_DIRECT_URL ?? url).catch((cause: unknown) => {
      if (cause instanceof RialtoError) throw cause;
      throw refusedDatabase(`a migration failed: ${(cause as Error).message}`, cause);
    });
    state = await schemaState(url);
  }
  const { applied, needed } = state;
  if (applied < needed)
    throw refusedDatabase(`the schema is behind (${applied} of ${needed} migrations); run \`rialto db migrate\` first`);
}

/**
 * Checks a database before anything else uses it. Throws `unavailable` with one line that names the setting. @param
 * mayForget accepts a server that can lose acknowledged writes (fsync off).
 */
export async function checkDatabase(url: string, mayForget = false): Promise<void> {
  await withClient(url, async (client) => {
    const { rows } = await client.query<{
      version: number;
      encoding: string;
      max: number;
      fsync: string;
      canCreate: boolean;
    }>(
      `
      select
        current_setting('server_version_num')::int as version,
        current_setting('server_encoding') as encoding,
        current_setting('max_connections')::int as max,
        current_setting('fsync') as fsync,
        has_database_privilege(current_database(), 'CREATE')
          and has_schema_privilege('public', 'CREATE') as "canCreate"`,
    );
    const server = rows[0]!;
    if (server.version < 150_000)
      throw refusedDatabase(`PostgreSQL 15 or later is needed, this is ${Math.floor(server.version / 10_000)}`);
    if (server.encoding !== 'UTF8')
      throw refusedDatabase(
        `the database has the encoding ${server.encoding}; ` +
          "create one with create database … encoding 'UTF8' template template0",
      );
    if (server.max < 30)
      throw refusedDatabase(`the server offers ${server.max} connections (max_connections), at least 30 are needed`);
    if (server.fsync !== 'on' && !mayForget)
      throw refusedDatabase('the server runs with fsync off, so it cannot keep what it acknowledged');
    if (
      !server.canCreate &&
      (await client.query<{ found: string | null }>(`select to_regclass('schema_migrations') as found`)).rows[0]
        ?.found === null
    ) {
      throw refusedDatabase('the user may not create tables in this database');
    }
  });
}

async function withClient<Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000, application_name: 'rialto' });
  client.on('error', () => undefined); // the running query reports it
  try {
    await client.connect();
  } catch (cause) {
    throw refusedDatabase(connectReason(cause), cause);
  }
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

function refusedDatabase(reason: string, cause?: unknown): RialtoError {
  return new RialtoError('unavailable', { message: `DATABASE_URL: ${reason}`, cause });
}

function connectReason(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string };
  if (code === '28P01' || code === '28000') return 'the server refused the user or the password';
  if (code === '3D000') return 'the database does not exist';
  if (code === '53300') return 'the server has no connection left';
  return `the server cannot be reached (${code ?? message ?? 'unknown'})`;
}
