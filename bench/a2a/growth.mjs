// Measures how costs grow with the stored data: the same sends, reads and lists with 10,000, 100,000 and 1,000,000
// tasks of one caller. A second gateway with a separate database stays at 10,000 tasks and is measured in turn, so that
// the ratios do not depend on the speed of the machine.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startEmbeddedPostgres } from '../../dist/src/platform/database/embedded-postgres.js';
import { load, warmUp } from '../lib/load.mjs';
import { json, startRialto } from '../lib/processes.mjs';
import { drift, of, printHeader, printTable, settings, show, spread } from '../lib/report.mjs';

const [least, ...sizes] = (process.env.SIZES ?? '10000,100000,1000000').split(',').map(Number);
const { rounds, seconds, warmUpSeconds } = settings({ seconds: 3 });

await printHeader('bench/a2a/growth', { rounds, of: `${seconds} s` });
const deployments = [];
try {
  for (const name of ['small', 'grown']) deployments.push(await startDeployment(name));
  const [small, grown] = deployments;
  await fill(small, least);
  const rows = [await measure(grown, least)];
  for (const size of sizes) rows.push(await measure(grown, size, small));
  const to = `to ${least} tasks`;
  printTable(
    [
      ...['tasks', 'send req/s', to, 'last to first shot', 'get req/s', to, 'last to first shot'],
      ...['list ms: first page', 'page 21'],
    ],
    rows,
  );
} finally {
  for (const { stop } of deployments) await stop();
}

/** Starts a gateway with a separate database server and one agent that has answered once. */
async function startDeployment(name) {
  const dataDir = mkdtempSync(join(tmpdir(), `rialto-bench-${name}-`));
  const postgres = await startEmbeddedPostgres({ dataDir, log: () => undefined });
  const rialto = await startRialto({ DATABASE_URL: postgres.url });
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  const published = { name: 'echo', description: 'x', executor: { kind: 'echo' }, a2a_enabled: true };
  await json(`${rialto.url}/api/a2a/published`, { token: rialto.token, body: published });
  const url = `${rialto.url}/a2a/agents/echo`;
  const ask = (method, params) => json(url, { token: rialto.token, body: JSON.parse(request(method, params)) });
  const { result } = await ask('SendMessage', message());
  const stop = async () => {
    await client.end();
    await rialto.stop();
    await postgres.stop();
    rmSync(dataDir, { recursive: true, force: true });
  };
  const headers = { authorization: `Bearer ${rialto.token}` };
  return { name, client, url, pid: rialto.pid, headers, ask, id: result.task.id, stop };
}

function request(method, params) {
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
}

function message() {
  return { message: { messageId: `m${Math.random()}`, role: 'ROLE_USER', parts: [{ text: 'x'.repeat(500) }] } };
}

/** Returns a row of the table: a gateway at a size, with its rates as ratios to those of the reference. */
async function measure(deployment, size, reference) {
  await fill(deployment, size);
  const paths = {
    send: () => request('SendMessage', message()),
    get: ({ id }) => request('GetTask', { id }),
  };
  const cells = [];
  for (const [path, body] of Object.entries(paths)) {
    const shoot = ({ url, pid, headers, id }, forSeconds) =>
      load(
        { url, pid, headers, body: () => body({ id }), expect: (text) => text.includes('TASK_STATE_COMPLETED') },
        { connections: 50, seconds: forSeconds },
      );
    const [shots, ratios] = [[], []];
    for (const at of [deployment, reference])
      if (at) await warmUp(`${path}, ${at.name}, ${size} tasks`, () => shoot(at, warmUpSeconds));
    for (let round = 0; round < rounds; round++) {
      shots.push(await shoot(deployment, seconds));
      if (reference) ratios.push(shots.at(-1).rps / (await shoot(reference, seconds)).rps);
    }
    cells.push(of(shots, 'rps', 0), reference ? show(spread(ratios)) : '', drift(shots));
  }
  const first = await timed(() => deployment.ask('ListTasks', { pageSize: 50 }));
  let pageToken = '';
  for (let page = 0; page < 20; page++) {
    const { result } = await deployment.ask('ListTasks', { pageSize: 100, ...(pageToken && { pageToken }) });
    pageToken = result.nextPageToken;
  }
  const deep = await timed(() => deployment.ask('ListTasks', { pageSize: 50, pageToken }));
  return [String(size), ...cells, show(first), show(deep)];
}

async function timed(work) {
  const times = [];
  for (let count = 0; count < 50; count++) {
    const at = performance.now();
    await work();
    times.push(performance.now() - at);
  }
  return spread(times);
}

/**
 * Fills the tables to a size with copies of one task that are at most an hour apart in age, and waits until the
 * database is at rest.
 */
async function fill({ client, id }, size) {
  const { rows } = await client.query('select count(*)::int as count from a2a_tasks');
  for (let missing = size - rows[0].count; missing > 0; missing -= 50_000) {
    await client.query(
      `with made as (
         insert into a2a_tasks (id, org_id, agent_id, agent_name, context_id, owner, principal, status_state,
           status_message, status_timestamp, history, artifacts, seq, folded_seq)
         select gen_random_uuid(), org_id, agent_id, agent_name, gen_random_uuid()::text, owner, principal,
           status_state, status_message, status_timestamp - random() * interval '1 hour', history, artifacts,
           seq, folded_seq
         from a2a_tasks, generate_series(1, $2) where id = $1 returning id)
       insert into a2a_task_events (task_id, first_seq, seq, body, terminal, at)
       select made.id, e.first_seq, e.seq, e.body, e.terminal, e.at from made, a2a_task_events e where e.task_id = $1`,
      [id, Math.min(missing, 50_000)],
    );
  }
  for (const table of ['a2a_tasks', 'a2a_task_events']) await client.query(`vacuum analyze ${table}`);
  await client.query('checkpoint');
}
