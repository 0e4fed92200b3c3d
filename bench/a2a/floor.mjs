// The least that a durable server does for the requests of bench/a2a: it stores a task with its answer in one row, and
// one statement stores or reads all tasks that came during the statement before. It has no token, policy, audit, lease,
// limits or validation. Usage: node floor.mjs <database>
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: process.argv[2], max: 10 });
await pool.query('create table floor_tasks (id uuid primary key, body json not null)');
const insert = {
  name: 'insert',
  text: 'insert into floor_tasks select * from unnest($1::uuid[], $2::json[])',
};
const select = { name: 'select', text: 'select id, body from floor_tasks where id = any($1::uuid[])' };

/** Returns a function that passes its items to `run` together with those that come during the run before. */
function grouped(run) {
  let waiting = [];
  let isRunning = false;
  const runWaiting = async () => {
    isRunning = true;
    // Lets the other requests of this turn join.
    await new Promise((resolve) => setImmediate(resolve));
    while (waiting.length > 0) {
      const group = waiting;
      waiting = [];
      try {
        const results = await run(group.map(({ item }) => item));
        for (const [index, { resolve }] of group.entries()) resolve(results[index]);
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    isRunning = false;
  };
  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (!isRunning) void runWaiting();
    });
}

const store = grouped(async (tasks) => {
  await pool.query({ ...insert, values: [tasks.map(({ id }) => id), tasks.map((task) => JSON.stringify(task))] });
  return tasks;
});

const read = grouped(async (ids) => {
  const { rows } = await pool.query({ ...select, values: [ids] });
  const tasks = new Map(rows.map(({ id, body }) => [id, body]));
  return ids.map((id) => tasks.get(id));
});

function finished({ parts, messageId }) {
  const timestamp = new Date().toISOString();
  const ids = { id: randomUUID(), contextId: randomUUID() };
  return {
    ...ids,
    status: {
      state: 'TASK_STATE_COMPLETED',
      timestamp,
      message: { messageId: randomUUID(), role: 'ROLE_AGENT', parts },
    },
    history: [{ messageId, role: 'ROLE_USER', parts }],
    artifacts: [{ artifactId: 'echo', name: 'echo', parts }],
  };
}

/** The four events of a task as server-sent events. */
function eventsOf(call, { id: taskId, contextId, status, history, artifacts }) {
  const at = { timestamp: status.timestamp };
  return [
    { task: { id: taskId, contextId, status: { state: 'TASK_STATE_SUBMITTED', ...at }, history } },
    { statusUpdate: { taskId, contextId, status: { state: 'TASK_STATE_WORKING', ...at } } },
    { artifactUpdate: { taskId, contextId, artifact: artifacts[0], lastChunk: true } },
    { statusUpdate: { taskId, contextId, status } },
  ]
    .map((result) => `data: ${JSON.stringify({ jsonrpc: '2.0', id: call, result })}\n\n`)
    .join('');
}

async function answer(text, response) {
  const { id: call, method, params } = JSON.parse(text);
  const answerWith = (result) =>
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: call, result }));
  if (method === 'GetTask') return answerWith(await read(params.id));
  const task = finished(params.message);
  await store(task);
  if (method === 'SendMessage') return answerWith({ task });
  return response.writeHead(200, { 'content-type': 'text/event-stream' }).end(eventsOf(call, task));
}

const card = JSON.stringify({ name: 'echo', description: 'Repeats the message.', skills: [] });
const server = createServer((request, response) => {
  if (request.method === 'GET') return response.writeHead(200, { 'content-type': 'application/json' }).end(card);
  let text = '';
  request.setEncoding('utf8');
  request.on('data', (chunk) => (text += chunk));
  request.on('end', () => {
    answer(text, response).catch((thrown) => response.writeHead(500).end(String(thrown)));
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => console.log(`ready http://127.0.0.1:${server.address().port}`));
process.on('SIGTERM', () => process.exit(0));
