// BullMQ's no-op add and process, 200 open; prints how many a second. node noop.mjs <database> <redis or none>
import { createPostgresBackend, createRedisBackend, Queue, setDefaultBackendFactory, Worker } from 'bullmq';
import pg from 'pg';

const [database, redis] = process.argv.slice(2);
setDefaultBackendFactory(redis === 'none' ? createPostgresBackend : createRedisBackend);
const pool = new pg.Pool({ connectionString: database, max: 8, options: '-c search_path=bullmq' });
const connection = redis === 'none' ? pool : { url: redis, maxRetriesPerRequest: null };
const queue = new Queue('noop', { connection });
const waiting = new Map();
const worker = new Worker('noop', ({ data }) => Promise.resolve(void waiting.get(data.id)?.()), {
  connection,
  concurrency: 50,
});
await worker.waitUntilReady();
let n = 0;
const until = performance.now() + 4_000;
const loop = async () => {
  while (performance.now() < until) {
    const id = ++n;
    const done = new Promise((resolve) => waiting.set(id, resolve));
    await queue.add('noop', { id }, { attempts: 1, removeOnComplete: true });
    await done;
    waiting.delete(id);
  }
};
await Promise.all(Array.from({ length: 200 }, loop));
console.log(n / 4);
await worker.close(true);
await queue.close();
process.exit(0);
