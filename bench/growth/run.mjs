// Measures how the cost of one operation grows with what exists already: one report of an executor with the chunks of
// its task, one turn of a conversation with its earlier turns, one registration, one call, one dispatch and one
// explanation with the registered agents, one publication with the published ones. A cost is processor time of the
// gateway and WAL. ONLY=report,turn selects curves.
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { warmUp } from '../lib/load.mjs';
import { cpuMicros, json, start, startRialto } from '../lib/processes.mjs';
import { printHeader, printTable } from '../lib/report.mjs';
import { startPostgres } from '../lib/services.mjs';

const sizes = (process.env.COUNTS ?? '10,100,1000,3000').split(',').map(Number);
/** Operations that are measured at each size. */
const sample = Number(process.env.SAMPLE ?? 50);
const warmUpOperations = 200;
const only = process.env.ONLY?.split(',');

const postgres = await startPostgres();
const DATABASE_URL = await postgres.database('growth');
await printHeader('bench/growth', { rounds: 1, of: `${sample} operations`, databaseUrl: DATABASE_URL });
const agents = await start('bench/growth/agents.mjs', { ready: /ready (\S+)/ });
const gateway = await startRialto({ DATABASE_URL });
const client = new pg.Client({ connectionString: DATABASE_URL });
const { url, token } = gateway;
const at = (path, body, bearer = token) => json(`${url}${path}`, { token: bearer, body });

const curves = { report, turn, registration: registerAgent, publication: publishAgent };
const rows = [];
try {
  await client.connect();
  for (const [name, prepare] of Object.entries(curves)) {
    if (only && !only.includes(name)) continue;
    if (name === 'report' || name === 'turn') await warmUpWith(name, prepare);
    await curve(name, await prepare());
  }
  printTable(['operation', 'earlier ones', 'ms', 'CPU ms', 'WAL bytes'], rows);
} finally {
  await client.end();
  await gateway.stop();
  await agents.stop();
  await postgres.stop();
}

/** Repeats the operation of a new task until its cost has settled. */
function warmUpWith(name, prepare) {
  return warmUp(name, async () => {
    const operation = await prepare();
    const before = cpuMicros(gateway.pid);
    for (let n = 0; n < warmUpOperations; n++) await operation(n);
    return { cpu: (cpuMicros(gateway.pid) - before) / warmUpOperations };
  });
}

/** Repeats an operation up to each size, and measures the last ones before it. */
async function curve(name, operation) {
  let done = 0;
  for (const size of sizes) {
    while (done < size - sample) await operation(done++);
    const count = size - done;
    await add(name, size, count, () => operation(done++));
    if (name !== 'registration') continue;
    const work = { workType: 'rare', description: 'Take basil and return cedar of ember' };
    const call = { agentCardId: 'agent_7', skillId: 'convert', args: work };
    const beside = {
      call: () => at('/api/a2a/invoke', call),
      dispatch: () => at('/api/a2a/dispatch', work),
      explanation: () => at('/api/a2a/dispatch/explain', work),
    };
    for (const [kind, one] of Object.entries(beside)) {
      if (size === sizes[0]) await warmUpWith(kind, () => one);
      await add(kind, size, sample, one);
    }
  }
}

async function add(name, size, count, operation) {
  const before = { at: performance.now(), cpu: cpuMicros(gateway.pid), wal: await wal() };
  for (let n = 0; n < count; n++) await operation();
  const each = (value, digits) => (value / count).toFixed(digits);
  const [ms, cpu] = [performance.now() - before.at, (cpuMicros(gateway.pid) - before.cpu) / 1_000];
  rows.push([name, String(size), each(ms, 1), each(cpu, 1), each((await wal()) - before.wal, 0)]);
  console.log(rows.at(-1).join(' '));
}

async function wal() {
  return (await client.query(`select (pg_current_wal_insert_lsn() - '0/0')::float8 as position`)).rows[0].position;
}

/** Publishes a mailbox agent, and returns its name, a function that sends to it, and one that takes its next task. */
async function mailbox() {
  const name = `box-${randomUUID().slice(0, 8)}`;
  const body = { name, description: 'x', a2a_enabled: true, executor: { kind: 'mailbox' } };
  const { secret } = await at('/api/a2a/published', body);
  const send = (task = {}) => {
    const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'x'.repeat(90) }], ...task };
    const params = { message, configuration: { returnImmediately: true, historyLength: 1 } };
    return at(`/a2a/agents/${name}`, { jsonrpc: '2.0', id: 1, method: 'SendMessage', params });
  };
  const lease = () => at(`/api/mailbox/${name}/lease?waitMs=30000&historyLength=1`, {}, secret);
  return { send, lease };
}

function tell({ task, token: bearer, leaseEpoch }, body) {
  return at(`/api/executions/${task.id}/events`, { id: randomUUID(), leaseEpoch, ...body }, bearer);
}

/** A worker that appends 90 characters to an artifact with each report. */
async function report() {
  const { send, lease } = await mailbox();
  await send();
  const leased = await lease();
  const parts = [{ text: 'x'.repeat(90) }];
  return (n) => tell(leased, { type: 'artifact', artifact: { artifactId: 'a', parts }, append: n > 0 });
}

/** A caller who answers the question of a worker, until the worker's next question. */
async function turn() {
  const { send, lease } = await mailbox();
  const { result } = await send();
  const { id: taskId, contextId } = result.task;
  await tell(await lease(), { type: 'ask', text: 'x'.repeat(90) });
  return async () => {
    await send({ taskId, contextId });
    await tell(await lease(), { type: 'ask', text: 'x'.repeat(90) });
  };
}

function registerAgent() {
  return (n) => at('/api/a2a/agents', { url: `${agents.match[1]}/agents/${n}` });
}

/** Publishes an agent and sends it a message. */
function publishAgent() {
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] };
  return async (n) => {
    const name = `echo-${n}`;
    await at('/api/a2a/published', { name, description: 'x', a2a_enabled: true, executor: { kind: 'echo' } });
    await at(`/a2a/agents/${name}`, { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } });
  };
}
