// Measures webhook deliveries per second (queued, signed, posted and recorded) and compares them with BullMQ's add and
// process of a no-op, and of a signed post to the same receiver without storage. They run in turn in one run, on Redis
// and on PostgreSQL. BACKENDS=redis,postgres ROUNDS=5 TASKS=2000
import { warmUp } from '../lib/load.mjs';
import { cpuMicros, json, start, startBare, startRialto, until } from '../lib/processes.mjs';
import { drift, of, printHeader, printTable, settings, show, spread } from '../lib/report.mjs';
import { startPostgres, startQueues } from '../lib/services.mjs';

const { rounds, seconds, warmUpSeconds } = settings();
const tasks = Number(process.env.TASKS ?? 2_000);
/** Three events per task: working, the artifact, completed. */
const perShot = 3 * tasks;

const postgres = await startPostgres();
const { redis, backends } = await startQueues();
await printHeader('bench/webhooks', { rounds, of: `${perShot} deliveries`, queues: backends });
const receiver = await start('bench/webhooks/receiver.mjs', { ready: /ready (\S+)/ });
const received = async () => Number(await (await fetch(receiver.match[1])).text());

try {
  for (const backend of backends) await measure(backend);
} finally {
  await receiver.stop();
  redis?.stop();
  await postgres.stop();
}

async function measure(backend) {
  const database = await postgres.database(`hooks_${backend}`);
  const rialto = await startRialto({
    DATABASE_URL: database,
    REDIS_URL: backend === 'redis' ? redis.url : '',
    // One receiver represents many hosts, and one org represents many orgs.
    RIALTO_WEBHOOK_MAX_PER_HOST: '50',
    RIALTO_WEBHOOK_MAX_PER_ORG: '50',
  });
  const { url, token } = rialto;
  const queue = backend === 'redis' ? redis.url : 'none';
  const peers = {
    'no-op': await startBare(database, queue, 'none'),
    'signed post': await startBare(database, queue, 'post', receiver.match[1]),
  };
  try {
    const published = { name: 'echo', description: 'x', executor: { kind: 'echo' }, a2a_enabled: true };
    await json(`${url}/api/a2a/published`, { token, body: published });
    await json(`${url}/api/webhooks/secrets`, { token, body: {} });
    const before = await received();
    for (let count = 0; count < tasks; count += 50) await Promise.all(Array.from({ length: 50 }, () => send(rialto)));
    await until(`${perShot} deliveries made`, async () => (await received()) - before >= perShot);
    await warmUp(`Rialto, queue on ${backend}`, () => replay(rialto));
    for (const [name, peer] of Object.entries(peers))
      await warmUp(`${name}, queue on ${backend}`, () => peer.shoot({ seconds: warmUpSeconds, open: 200 }));
    const shots = { Rialto: [], 'no-op': [], 'signed post': [] };
    for (let round = 0; round < rounds; round++) {
      shots.Rialto.push(await replay(rialto));
      for (const [name, peer] of Object.entries(peers)) shots[name].push(await peer.shoot({ seconds, open: 200 }));
    }
    const ratioTo = (name) => show(spread(shots.Rialto.map(({ rps }, index) => rps / shots[name][index].rps)));
    printTable(
      ['queue', 'server', 'gateway to it', 'a second', 'CPU µs each', 'last to first shot'],
      Object.entries(shots).map(([name, list]) => [
        ...[backend, name, name === 'Rialto' ? '' : ratioTo(name)],
        ...[of(list, 'rps', 0), of(list, 'cpu', 0), drift(list)],
      ]),
    );
  } finally {
    await Promise.all([rialto, ...Object.values(peers)].map(({ stop }) => stop()));
  }
}

/** Sends one task with a push configuration for the receiver. */
function send({ url, token }) {
  const message = { messageId: `m${Math.random()}`, role: 'ROLE_USER', parts: [{ text: 'x'.repeat(500) }] };
  const configuration = { returnImmediately: true, taskPushNotificationConfig: { id: 'hook', url: receiver.match[1] } };
  const params = { message, configuration };
  return json(`${url}/a2a/agents/echo`, { token, body: { jsonrpc: '2.0', id: 1, method: 'SendMessage', params } });
}

/** Sends all events again, and measures from the request to the last post. */
async function replay({ url, token, pid }) {
  const cpuBefore = cpuMicros(pid);
  const before = await received();
  const startedAt = performance.now();
  let count = 0;
  for (let cursor; ;) {
    const page = await json(`${url}/api/webhooks/deliveries/replay`, {
      token,
      body: { state: 'delivered', ...(cursor && { cursor }) },
    });
    count += page.replayed;
    cursor = page.nextCursor;
    if (!cursor) break;
  }
  await until(`${count} deliveries made`, async () => (await received()) - before >= count, 10);
  const rps = count / ((performance.now() - startedAt) / 1_000);
  return { rps, cpu: (cpuMicros(pid) - cpuBefore) / count };
}
