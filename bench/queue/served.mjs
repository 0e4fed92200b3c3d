// A typical hand-written server: a JSON-RPC server on node:http that stores a task and its event in one prepared
// statement and adds a BullMQ job, and a worker in the same process that ends both in another statement. It has no
// token, policy, audit, lease or stream. Usage: node served.mjs <database> <redis or none>; it prints its port.
import { createServer } from 'node:http';
import { createPostgresBackend, createRedisBackend, Queue, setDefaultBackendFactory, Worker } from 'bullmq';
import pg from 'pg';
import { statements, tables } from './statements.mjs';

const [database, redis] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: database, max: 10 });
const queues = new pg.Pool({ connectionString: database, max: 8, options: '-c search_path=bullmq' });
setDefaultBackendFactory(redis === 'none' ? createPostgresBackend : createRedisBackend);
const connection = redis === 'none' ? queues : { url: redis, maxRetriesPerRequest: null };
await pool.query(tables);
const queue = new Queue('served', { connection });
const work = ({ data: { id, body } }) => pool.query({ ...statements.end, values: [id, body] }).then(() => undefined);
const worker = new Worker('served', work, { connection, concurrency: 50 });
await worker.waitUntilReady();
let n = Date.now() * 1_000;

async function accept(text) {
  const { id: call, params } = JSON.parse(text);
  const id = String(++n);
  const body = JSON.stringify(params.message);
  await pool.query({ ...statements.open, values: [id, body] });
  await queue.add('served', { id, body }, { attempts: 1, removeOnComplete: true });
  return JSON.stringify({
    jsonrpc: '2.0',
    id: call,
    result: { task: { id, status: { state: 'TASK_STATE_SUBMITTED' } } },
  });
}

const server = createServer((req, res) => {
  let text = '';
  req.setEncoding('utf8');
  req.on('data', (chunk) => (text += chunk));
  req.on('end', () => {
    accept(text).then(
      (answer) => res.writeHead(200, { 'content-type': 'application/json' }).end(answer),
      (thrown) => res.writeHead(500).end(String(thrown)),
    );
  });
});
server.listen(0, '127.0.0.1', () => console.log(`listening ${server.address().port}`));
process.on('SIGTERM', () => process.exit(0));
