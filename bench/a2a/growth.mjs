// How cost grows with what is stored: the same sends, reads and lists over 10,000, 100,000 and 1,000,000 tasks of one caller.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startEmbeddedPostgres } from '../../dist/src/platform/database/embedded-postgres.js';
import { load, show, spread } from '../lib/load.mjs';
import { json, startRialto } from '../lib/processes.mjs';

const sizes = (process.env.SIZES ?? '10000,100000,1000000').split(',').map(Number);
const rounds = Number(process.env.ROUNDS ?? 3);
const seconds = Number(process.env.SECONDS_PER_SHOT ?? 3);

const dataDir = mkdtempSync(join(tmpdir(), 'rialto-bench-pg-'));
const postgres = await startEmbeddedPostgres({ dataDir, log: () => undefined });
const rialto = await startRialto({ DATABASE_URL: postgres.url });
const client = new pg.Client({ connectionString: postgres.url });
await client.connect();

try {
  const published = { name: 'echo', description: 'x', executor: { kind: 'echo' }, a2a_enabled: true };
  await json(`${rialto.url}/api/a2a/published`, { token: rialto.token, body: published });
  const url = `${rialto.url}/a2a/agents/echo`;
  const headers = { authorization: `Bearer ${rialto.token}` };
  let n = 0;
  const request = (method, params) => JSON.stringify({ jsonrpc: '2.0', id: ++n, method, params });
  const send = () =>
    request('SendMessage', { message: { messageId: `m${n}`, role: 'ROLE_USER', parts: [{ text: 'x'.repeat(500) }] } });
  const ask = (method, params) => json(url, { token: rialto.token, body: JSON.parse(request(method, params)) });
  const { result } = await ask('SendMessage', JSON.parse(send()).params);
  const { id } = result.task;
  const timed = async (work) => {
    const times = [];
    for (let count = 0; count < 50; count++) {
      const at = performance.now();
      await work(count);
      times.push(performance.now() - at);
    }
    return spread(times);
  };
  for (const size of sizes) {
    await fill(size, id);
    await load(url, { headers, body: send, seconds: 2 });
    const [sends, gets] = [[], []];
    for (let round = 0; round < rounds; round++) {
      sends.push(await load(url, { headers, body: send, seconds }));
      gets.push(await load(url, { headers, body: () => request('GetTask', { id }), seconds }));
    }
    const first = await timed(() => ask('ListTasks', { pageSize: 50 }));
    let pageToken = '';
    for (let page = 0; page < 20; page++)
      ({ nextPageToken: pageToken } = (
        await ask('ListTasks', { pageSize: 100, ...(pageToken && { pageToken }) })
      ).result);
    const deep = await timed(() => ask('ListTasks', { pageSize: 50, pageToken }));
    const rate = (shots) => show(spread(shots.map(({ rps }) => rps)), 0);
    console.log(
      `${String(size).padStart(9)} tasks: send req/s ${rate(sends)}, get req/s ${rate(gets)}; list ms: first page ${show(first)}, page 21 ${show(deep)}`,
    );
  }
} finally {
  await client.end();
  await rialto.stop();
  await postgres.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

/** Brings the tables to a size with copies of one task, an hour apart in age at the most. */
async function fill(size, id) {
  const { rows } = await client.query('select count(*)::int as count from a2a_tasks');
  for (let missing = size - rows[0].count; missing > 0; missing -= 50_000) {
    await client.query(
      `with made as (
         insert into a2a_tasks (id, org_id, agent_id, agent_name, context_id, owner, principal, status_state, status_message,
           status_timestamp, history, artifacts, seq, folded_seq)
         select gen_random_uuid(), org_id, agent_id, agent_name, gen_random_uuid()::text, owner, principal, status_state, status_message,
           status_timestamp - random() * interval '1 hour', history, artifacts, seq, folded_seq
         from a2a_tasks, generate_series(1, $2) where id = $1 returning id)
       insert into a2a_task_events (task_id, seq, body, terminal, at)
       select made.id, e.seq, e.body, e.terminal, e.at from made, a2a_task_events e where e.task_id = $1`,
      [id, Math.min(missing, 50_000)],
    );
  }
  await client.query('vacuum analyze a2a_tasks');
  await client.query('vacuum analyze a2a_task_events');
}
