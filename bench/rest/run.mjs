// Measures a gateway at rest: the processor time of its process and of its database, its memory, and the statements
// that its timers send. SECONDS=60 sets how long, after as long a start.
import { setTimeout as sleep } from 'node:timers/promises';
import { readFileSync, readdirSync } from 'node:fs';
import pg from 'pg';
import { cpuMicros, startRialto } from '../lib/processes.mjs';
import { printHeader, printTable } from '../lib/report.mjs';
import { startPostgres } from '../lib/services.mjs';

const seconds = Number(process.env.SECONDS ?? 30);

const postgres = await startPostgres({ shared_preload_libraries: 'pg_stat_statements' });
const DATABASE_URL = await postgres.database('rest');
await printHeader('bench/rest', { rounds: 1, of: `${seconds} s`, databaseUrl: DATABASE_URL });
const began = performance.now();
const gateway = await startRialto({ DATABASE_URL });
const readyMs = performance.now() - began;
const client = new pg.Client({ connectionString: DATABASE_URL });
try {
  await client.connect();
  await client.query('create extension if not exists pg_stat_statements');
  await sleep(Math.min(seconds, 20) * 1_000);
  const [{ pid: backend }] = (await client.query('select pg_backend_pid() as pid')).rows;
  const server = Number(readFileSync(`/proc/${backend}/stat`, 'utf8').split(') ')[1].split(' ')[1]);
  await client.query('select pg_stat_statements_reset()');
  const before = [cpuMicros(gateway.pid), cpuOf(server)];
  await sleep(seconds * 1_000);
  const used = [cpuMicros(gateway.pid) - before[0], cpuOf(server) - before[1]];
  const share = (micros) => `${(micros / seconds / 10_000).toFixed(2)} %`;
  const memory = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${gateway.pid}/status`, 'utf8'))[1] / 1_024;
  const rows = [[readyMs.toFixed(0), share(used[0]), share(used[1]), memory.toFixed(0)]];
  printTable(['ready ms', 'gateway, of a core', 'database, of a core', 'MiB'], rows);
  const { rows: statements } = await client.query(
    `select round(calls / $1::numeric, 2)::text as rate, round(total_exec_time::numeric, 1)::text as ms,
       left(regexp_replace(query, '\\s+', ' ', 'g'), 110) as query
     from pg_stat_statements
     where dbid = (select oid from pg_database where datname = current_database()) and calls > 2
     order by calls desc`,
    [seconds],
  );
  printTable(
    ['per second', 'ms in all', 'statement'],
    statements.map(({ rate, ms, query }) => [rate, ms, query]),
  );
} finally {
  await client.end();
  await gateway.stop();
  await postgres.stop();
}

/** Processor time of a server and all its processes. */
function cpuOf(parent) {
  const children = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && parentOf(name) === parent);
  return [String(parent), ...children].reduce((sum, pid) => sum + (cpuMicros(pid) || 0), 0);
}

function parentOf(pid) {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')[1]);
  } catch {
    return NaN;
  }
}
