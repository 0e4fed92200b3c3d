// The least that a durable server does for the requests of bench/a2a: it stores a task with its answer in one row, with
// all tasks that came during the last commit in one statement. It has no token, policy, audit, lease, limits or
// validation. Usage: node floor.mjs <database>
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: process.argv[2], max: 10 });
await pool.query('create table floor_tasks (id uuid primary key, body json not null)');
const insert = {
  name: 'insert',
  text: 'insert into floor_tasks select * from unnest($1::uuid[], $2::json[])',
};
const select = { name: 'select', text: 'select body from floor_tasks where id = $1' };

let waiting = [];
let isStoring = false;

/** Stores a task with those that come at the same time. */
function store(id, body) {
  return new Promise((resolve, reject) => {
    waiting.push({ id, body, resolve, reject });
    if (!isStoring) void storeWaiting();
  });
}

async function storeWaiting() {
  isStoring = true;
  // Lets the other requests of this turn join.
  await new Promise((resolve) => setImmediate(resolve));
  while (waiting.length > 0) {
    const group = waiting;
    waiting = [];
    try {
      await pool.query({ ...insert, values: [group.map(({ id }) => id), group.map(({ body }) => body)] });
      for (const { resolve } of group) resolve();
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }
  isStoring = false;
}

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
  if (method === 'GetTask') {
    const { rows } = await pool.query({ ...select, values: [params.id] });
    return answerWith(rows[0].body);
  }
  const task = finished(params.message);
  await store(task.id, JSON.stringify(task));
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
