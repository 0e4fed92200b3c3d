// Deliveries a second, queued, signed, posted and recorded, beside BullMQ's no-op add and process: one run, in turn, on Redis and on
// PostgreSQL. BACKENDS=redis,postgres ROUNDS=5
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { show, spread } from '../lib/load.mjs';
import { cpuMicros, json, root, start, startRialto } from '../lib/processes.mjs';
import { startPostgres, startRedis } from '../lib/services.mjs';

const rounds = Number(process.env.ROUNDS ?? 5);
const backends = (process.env.BACKENDS ?? 'redis,postgres').split(',');
const tasks = 2_000;
/** Working, the artifact, completed. */
const perShot = 3 * tasks;

const postgres = await startPostgres();
const redis = backends.includes('redis') ? await startRedis() : undefined;
const receiver = await start('bench/webhooks/receiver.mjs', { ready: /ready (\S+)/ });
const received = async () => Number(await (await fetch(receiver.match[1])).text());

try {
  for (const backend of backends.filter((name) => name === 'postgres' || redis)) await measure(backend);
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
    // One receiver stands for many hosts, and one org for many.
    RIALTO_WEBHOOK_MAX_PER_HOST: '50',
    RIALTO_WEBHOOK_MAX_PER_ORG: '50',
  });
  const { url, token } = rialto;
  try {
    const published = { name: 'echo', description: 'x', executor: { kind: 'echo' }, a2a_enabled: true };
    await json(`${url}/api/a2a/published`, { token, body: published });
    await json(`${url}/api/webhooks/secrets`, { token, body: {} });
    const before = await received();
    for (let count = 0; count < tasks; count += 50) await Promise.all(Array.from({ length: 50 }, () => send(rialto)));
    while ((await received()) - before < perShot) await sleep(100);
    const ours = [];
    const bare = [];
    for (let round = 0; round < rounds; round++) {
      ours.push(await replay(rialto));
      bare.push(noop(backend === 'redis' ? redis.url : 'none', database));
    }
    const ratios = ours.map(({ rate }, index) => rate / bare[index]);
    console.log(`\nwebhooks, queue on ${backend}: ${rounds} rounds of ${perShot} deliveries; median (least to most)`);
    console.log(`  delivered to BullMQ's no-op add and process ${show(spread(ratios))}`);
    const of = (field) => show(spread(ours.map((shot) => shot[field])), 0);
    console.log(
      `    Rialto ${of('rate')} a second, ${of('cpu')} µs of CPU each    no-op ${show(spread(bare), 0)} a second`,
    );
  } finally {
    await rialto.stop();
  }
}

/** One task whose events go to the receiver. */
function send({ url, token }) {
  const message = { messageId: `m${Math.random()}`, role: 'ROLE_USER', parts: [{ text: 'x'.repeat(500) }] };
  const configuration = { returnImmediately: true, taskPushNotificationConfig: { id: 'hook', url: receiver.match[1] } };
  const params = { message, configuration };
  return json(`${url}/a2a/agents/echo`, { token, body: { jsonrpc: '2.0', id: 1, method: 'SendMessage', params } });
}

/** Everything once more, from the request to the last post. */
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
  while ((await received()) - before < count) await sleep(10);
  const rate = count / ((performance.now() - startedAt) / 1_000);
  return { rate, cpu: (cpuMicros(pid) - cpuBefore) / count };
}

function noop(redisUrl, database) {
  const args = [join(root, 'bench/webhooks/noop.mjs'), database, redisUrl];
  return Number(execFileSync(process.execPath, args, { encoding: 'utf8' }));
}
