import { start, startRialto, until } from '../lib/processes.mjs';
import { freePort, startPostgres, startQueues } from '../lib/services.mjs';
import { Allocations, inspectable } from './allocations.mjs';
import { Counters } from './counts.mjs';
import { openGateway, paths } from './paths.mjs';
import { textMaker } from './text.mjs';

const serverSettings = {
  shared_preload_libraries: 'pg_stat_statements',
  autovacuum: 'off',
  // A checkpoint would add images of whole pages to the WAL of the operations after it.
  checkpoint_timeout: '1h',
  max_wal_size: '4GB',
};

/**
 * Counts every path on the gateway of a built checkout, with new servers. Paths on Redis are omitted when there is no
 * redis-server. @returns the counts by path. @param skipFailing omits a path that fails, as some do on earlier commits
 */
export async function measureCheckout(checkout, { operations, isWanted, skipFailing }) {
  const postgres = await startPostgres(serverSettings);
  const { redis } = await startQueues();
  const agent = await start('bench/bridge/agent.mjs', { ready: /ready (\S+)/ });
  const found = {};
  try {
    const runs = { ...(redis && { redis: Object.keys(paths) }), postgres: ['async', '20 async at once'] };
    for (const [backend, names] of Object.entries(runs)) {
      const database = await postgres.database(`ledger_${backend}`);
      const queue = backend === 'redis' ? redis : { url: '', commands: () => 0 };
      const inspector = await freePort();
      const env = { DATABASE_URL: database, REDIS_URL: queue.url, NODE_OPTIONS: inspectable(inspector) };
      const gateway = await startRialto(env, checkout);
      const counters = await Counters.open(database, queue, await Allocations.open(inspector));
      try {
        const opened = await openGateway(gateway, {
          agentUrl: agent.match[1],
          text: textMaker(),
          ended: (id) => until(`task ${id} is completed`, () => counters.hasEnded(id), 2),
        });
        for (const name of names.filter(isWanted)) {
          const label = backend === 'redis' ? name : `${name}, queue on PostgreSQL`;
          try {
            const operation = await paths[name](opened);
            for (let n = 0; n < operations / 3; n++) await operation();
            found[label] = await counters.measure(operations, operation);
          } catch (error) {
            if (!skipFailing) throw error;
            console.error(`${label}: ${error.message}`);
          }
        }
      } finally {
        await counters.close();
        await gateway.stop();
      }
    }
    return found;
  } finally {
    await agent.stop();
    redis?.stop();
    await postgres.stop();
  }
}
