import type { DataSource } from 'typeorm';
import { entities } from '../entities.js';
import { loadOperatorSettings, type Settings } from '../platform/config/settings.js';
import { createDataSource, requireSchema } from '../platform/database/migrate.js';
import { createLogger } from '../platform/telemetry/logger.js';
import { OperatorService } from '../policy/operator.service.js';
import { openDatabase } from './database.js';
import type { Env } from './io.js';

/** Runs work as the operator of the deployment that the environment describes, and stops all parts afterwards. */
export function asOperator<Result>(
  env: Env,
  work: (operator: OperatorService, settings: Settings) => Promise<Result>,
): Promise<Result> {
  return withDatabase(env, async (dataSource, settings) => {
    const operator = await OperatorService.open(dataSource, settings, createLogger('silent'));
    try {
      return await work(operator, settings);
    } finally {
      await operator.close();
    }
  });
}

/** Runs work on the database of the deployment, at the schema of this version. */
export async function withDatabase<Result>(
  env: Env,
  work: (dataSource: DataSource, settings: Settings) => Promise<Result>,
): Promise<Result> {
  const settings = loadOperatorSettings(env);
  const database = await openDatabase(settings);
  try {
    await requireSchema(settings, database.url);
    const dataSource = await createDataSource(database.url, entities).initialize();
    try {
      return await work(dataSource, settings);
    } finally {
      await dataSource.destroy();
    }
  } finally {
    await database.close();
  }
}
