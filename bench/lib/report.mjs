import { execFileSync } from 'node:child_process';
import pg from 'pg';
import { findEmbeddedBinaries } from '../../dist/src/platform/database/embedded-binaries.js';

/**
 * Returns the number of rounds, the seconds of a shot, and the seconds of a warm-up shot, as set in the environment.
 */
export function settings({ rounds = 5, seconds = 4 } = {}) {
  const ofShot = Number(process.env.SECONDS_PER_SHOT ?? seconds);
  return { rounds: Number(process.env.ROUNDS ?? rounds), seconds: ofShot, warmUpSeconds: Math.min(ofShot, 2) };
}

/**
 * Prints the first line of every benchmark.
 * @param databaseUrl the external database that is measured; when absent, the line has the version of the embedded one
 */
export async function printHeader(
  name,
  { rounds, of, databaseUrl, queues = [process.env.REDIS_URL ? 'redis' : 'postgres'] },
) {
  const postgres = databaseUrl ? await serverVersion(databaseUrl) : `${embeddedVersion()} (embedded)`;
  const versions = `Node ${process.versions.node}, PostgreSQL ${postgres}, queue on ${queues.join(' and ')}`;
  console.log(`\n${name}: ${versions}; ${rounds} rounds of ${of}; median (least to most)`);
}

function embeddedVersion() {
  const text = execFileSync(findEmbeddedBinaries().postgres, ['--version'], { encoding: 'utf8' });
  return text.trim().split(' ').at(-1);
}

async function serverVersion(connectionString) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  const { rows } = await client.query('show server_version');
  await client.end();
  return rows[0].server_version;
}

/** Prints a Markdown table for bench/README.md. The first column is the version of Node. */
export function printTable(columns, rows) {
  const lines = [['Node', ...columns], ...rows.map((row) => [process.versions.node, ...row])];
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  lines.splice(
    1,
    0,
    widths.map((width) => '-'.repeat(width)),
  );
  console.log();
  for (const line of lines) console.log(`| ${line.map((text, column) => text.padEnd(widths[column])).join(' | ')} |`);
}

/**
 * Prints the results of the servers in the same rounds.
 * @param shots by server, the gateway first
 */
export function printServers(shots) {
  const [ours, ...peers] = Object.keys(shots);
  const ratioTo = (peer) => show(spread(shots[ours].map((shot, index) => shot.rps / shots[peer][index].rps)));
  printTable(
    ['server', 'gateway to it', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs a request', 'last to first shot'],
    [ours, ...peers].map((name) => [
      name,
      peers.includes(name) ? ratioTo(name) : '',
      of(shots[name], 'rps', 0),
      of(shots[name], 'p50', 1),
      of(shots[name], 'p99', 1),
      of(shots[name], 'cpu', 0),
      drift(shots[name]),
    ]),
  );
}

/** Returns the cost per request of the last shot as a ratio to the first. It is near 1 when the server was warm. */
export function drift(shots) {
  const [first, last] = [shots[0], shots.at(-1)];
  return (Number.isNaN(first.cpu) ? first.rps / last.rps : last.cpu / first.cpu).toFixed(2);
}

/** Formats one field of several shots. */
export function of(shots, field, digits) {
  return show(spread(shots.map((shot) => shot[field])), digits);
}

/** Returns the median, least and greatest of a list of numbers. */
export function spread(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return { median: sorted[Math.floor(sorted.length / 2)], least: sorted[0], most: sorted.at(-1) };
}

/** Formats a spread; empty when it is not known. */
export function show({ median, least, most }, digits = 2) {
  if (Number.isNaN(median)) return '';
  const [middle, low, high] = [median, least, most].map((value) =>
    value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits }),
  );
  return `${middle} (${low} to ${high})`;
}
