import type { Pool } from 'pg';
import type { DataSource } from 'typeorm';

/**
 * Returns the node-postgres pool of a data source. TypeORM types a driver without its pool, and it cannot prepare a
 * statement under a name, so that hot statements need the pool.
 *
 * Requested upstream: https://github.com/typeorm/typeorm/issues/2972 (closed), the pool of the driver;
 * https://github.com/typeorm/typeorm/issues/4762 (closed), prepared statements.
 * Canary test: `test/medium/library-internals.spec.ts`.
 */
export function poolOf(dataSource: DataSource): Pool {
  return (dataSource.driver as unknown as { master: Pool }).master;
}
