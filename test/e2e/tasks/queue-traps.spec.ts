import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { Queue, createRedisBackend, setDefaultBackendFactory, type RedisConnection, type Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { JobProducer } from '../../../src/platform/jobs/job-producer.js';
import { WorkerHost } from '../../../src/platform/jobs/worker-host.js';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { Board } from '../../support/gateway/board.js';
import { eventually } from '../../support/gateway/eventually.js';
import { FaultProxy, type Fault } from '../../support/stubs/fault-proxy.js';
import { becomesReady, startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { isInstalled, startRedis, type PrivateRedis } from '../../support/gateway/services.js';

const tasks = 'task-execution';
const queued = 'bull-traps';

/** Skipped on a machine without redis-server; the suites on Redis always have one. */
const { RIALTO_TEST_REDIS_URL: runsOnRedis } = process.env;
const onRedis = runsOnRedis !== undefined || isInstalled('redis-server') ? describe : describe.skip;

/** Tells whether all commands to the queue are still unanswered. */
async function areOpen(commands: jest.MockResult<unknown>[]): Promise<boolean> {
  const over = commands.map(({ value }) =>
    (value as Promise<unknown>).then(
      () => false,
      () => false,
    ),
  );
  return Promise.race([...over, wait(1, true)]);
}

onRedis('an unreliable Redis', () => {
  let redis: PrivateRedis;
  let proxy: FaultProxy;
  let gateway: TestGateway;
  let admin: Redis;

  beforeAll(async () => {
    redis = (await startRedis())!;
    proxy = await FaultProxy.start(redis.port);
    admin = new Redis(redis.url);
    admin.on('error', () => undefined);
    gateway = await startTestGateway({
      REDIS_URL: `redis://127.0.0.1:${proxy.port}`,
      RIALTO_QUEUE_PREFIX: queued,
    });
    await publish(gateway);
    await publish(gateway, { name: 'slow', executor: { kind: 'echo', delayMs: 1_000 } });
  });
  afterEach(() => proxy.set('pass'));
  afterAll(async () => {
    await gateway.close();
    admin.disconnect();
    await proxy.close();
    await redis.stop();
  });

  const send = async (agent = 'echo'): Promise<string> => {
    const configuration = { returnImmediately: true };
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x'), configuration }, { agent });
    return task.id;
  };
  const completed = (ids: readonly string[]) =>
    eventually(
      () =>
        gateway.sql(`select id from a2a_tasks where id = any($1) and status_state = 'completed'`, [ids as string[]]),
      ({ length }) => length === ids.length,
    );
  const onceEach = async (ids: readonly string[]) => {
    const ends = await gateway.sql(
      `select t.id, t.lease_epoch, count(e.*)::int as ends from a2a_tasks t
       join a2a_task_events e on e.task_id = t.id and e.terminal where t.id = any($1) group by 1, 2`,
      [ids as string[]],
    );
    expect(ends.map(({ ends: count, lease_epoch: epoch }) => [count, epoch])).toEqual(ids.map(() => [1, 1]));
  };
  /** Opens the queue as another client of Redis does. */
  const otherClient = (): Queue => {
    setDefaultBackendFactory(createRedisBackend);
    return new Queue(tasks, { connection: { url: redis.url }, prefix: queued }).on('error', () => undefined);
  };
  /**
   * Sends ten messages. `waited` counts the sends that were answered after the queue had finished or refused their
   * command.
   */
  const sends = async (): Promise<{ ids: string[]; waited: number }> => {
    const ids: string[] = [];
    let waited = 0;
    const add = jest.spyOn(Queue.prototype, 'add');
    for (let count = 0; count < 10; count++) {
      add.mockClear();
      ids.push(await send());
      if (!(await areOpen(add.mock.results))) waited++;
    }
    add.mockRestore();
    return { ids, waited };
  };
  const queueAnswers = () =>
    eventually(
      async () => (await gateway.call('GET', '/readyz', undefined, null)).body.checks.queue.status,
      (status) => status === 'ok',
    );

  const goesThroughTheQueue = () =>
    eventually(
      async () => {
        const id = await send();
        await completed([id]);
        const done = await new Board(gateway).jobs(tasks, 'completed').catch(() => []);
        return done.some(({ data }) => data.taskId === id);
      },
      (seen) => seen,
    );

  it.each<[string, Fault, number]>([
    ['refuses', 'refuse', 10],
    ['swallows everything', 'blackhole', 0],
    ['answers after two seconds', { delayMs: 2_000 }, 0],
    ['breaks off', { resetAfter: 20 }, 10],
  ])(
    'F15, F17 that %s: sends are answered at once, tasks end, the process stays ready, and then uses the queue',
    async (_what, fault, mayWait) => {
      await proxy.set(fault);
      const { ids, waited } = await sends();
      expect(waited).toBeLessThanOrEqual(mayWait);
      await completed(ids);
      await onceEach(ids);
      await becomesReady(gateway);
      await proxy.set('pass');
      await queueAnswers();
      await goesThroughTheQueue();
    },
  );

  it.each<[string, string[], string[], number]>([
    ['is full', ['config', 'set', 'maxmemory', '1'], ['config', 'set', 'maxmemory', '0'], 10],
    ['is a read-only replica', ['replicaof', '127.0.0.1', '1'], ['replicaof', 'no', 'one'], 10],
    ['accepts no write command', ['client', 'pause', '60000', 'write'], ['client', 'unpause'], 0],
  ])(
    'F17 that %s: sends are answered at once and tasks end',
    async (_what, [bad, ...rest], [good, ...more], mayWait) => {
      await admin.call(bad!, ...rest);
      try {
        const { ids, waited } = await sends();
        expect(waited).toBeLessThanOrEqual(mayWait);
        await completed(ids);
        await onceEach(ids);
      } finally {
        await admin.call(good!, ...more);
      }
      await queueAnswers();
    },
  );

  it('F14 loses everything: running tasks end, new ones are done, schedules are restored', async () => {
    const running = await Promise.all(Array.from({ length: 8 }, () => send('slow')));
    await admin.flushall();
    const later = await Promise.all(Array.from({ length: 8 }, () => send()));
    await admin.flushall();
    await completed([...running, ...later]);
    await onceEach([...running, ...later]);
    await eventually(
      () => admin.zcard(`${queued}:sweeps:repeat`),
      (count) => count > 0,
    );
  });

  it('F13, F14 dies without persistence, and restarts empty', async () => {
    const ids = await Promise.all(Array.from({ length: 5 }, () => send('slow')));
    process.kill(redis.pid, 'SIGKILL');
    for (let count = 0; count < 10; count++) ids.push(await send());
    await completed(ids);
    redis = (await startRedis(redis.port))!;
    await queueAnswers();
    ids.push(await send());
    await completed(ids);
    await onceEach(ids);
  });

  it('F16 fails over without notice: dead connections are abandoned, and work continues', async () => {
    proxy.freeze();
    const { ids, waited } = await sends();
    expect(waited).toBe(0);
    await completed(ids);
    await onceEach(ids);
    await goesThroughTheQueue();
  });

  it('F18 delivers a job ten times at once: one owner', async () => {
    const board = new Board(gateway);
    // A job that the queue does not deliver within a second is done without it, and writes no log line.
    await board.turn('sweeps', 'pause');
    await board.turn(tasks, 'pause');
    const id = await send('slow');
    const queue = otherClient();
    await Promise.all(Array.from({ length: 10 }, () => queue.add('task.execute', { taskId: id })));
    await board.turn(tasks, 'resume');
    await completed([id]);
    await onceEach([id]);
    const jobs = await board.jobsOf(tasks, 'completed', id, 11); // with the job that the send enqueued
    const lines = (await Promise.all(jobs.map((job) => board.logs(tasks, job.id)))).flat();
    expect(lines.filter((line) => line.includes('completed after'))).toHaveLength(1);
    await board.turn('sweeps', 'resume');
    await queue.close();
  });

  it('F19 delivers invalid jobs: they are dropped with a reason or do nothing, and the next job is done', async () => {
    const board = new Board(gateway);
    const queue = otherClient();
    for (const data of [{ taskId: 'not-an-id' }, { taskId: 7 }, 'text', null, { other: 'x' }])
      await queue.add('task.execute', data);
    const stranger = randomUUID();
    await queue.add('task.execute', { taskId: stranger });
    const raw = await queue.add('task.execute', { taskId: randomUUID() }, { delay: 60_000 });
    await admin.hset(`${queued}:${tasks}:${raw.id}`, 'data', '{"taskId":');
    await raw.promote();
    await board.jobsOf(tasks, 'completed', stranger);
    const failed = await eventually(
      async () => (await board.jobs(tasks, 'failed')).filter(({ failedReason }) => /dropped/.test(failedReason)),
      ({ length }) => length === 5,
    );
    expect(new Set(failed.map(({ failedReason }) => failedReason))).toEqual(
      new Set(['invalid_params: the payload does not fit this queue; the job is dropped']),
    );
    await goesThroughTheQueue();
    await queue.close();
  });

  it('does not hold a pause after it lost it: a pause ends with the lost queue', async () => {
    const board = new Board(gateway);
    await board.turn(tasks, 'pause');
    const id = await send();
    await wait(3_000);
    expect(await gateway.sql('select status_state from a2a_tasks where id = $1', [id])).toEqual([
      { status_state: 'submitted' },
    ]);
    await proxy.set('refuse');
    await completed([id]);
    await proxy.set('pass');
    await queueAnswers();
    await eventually(
      async () => (await board.turn(tasks, 'resume')).status,
      (status) => status === 200,
    );
  });

  it('an enqueue ends within its budget, for any state of the queue', async () => {
    await proxy.set('blackhole');
    const producer = gateway.gateway.get(JobProducer);
    const add = jest.spyOn(Queue.prototype, 'add');
    expect(await producer.tryEnqueue('task.execute', { taskId: randomUUID() }, { key: 'budget' })).toBe(false);
    expect(add).toHaveBeenCalledTimes(1);
    // Not because its command failed: the command is still open.
    expect(await areOpen(add.mock.results)).toBe(true);
    add.mockRestore();
  });

  it('is down when a process starts: it works from the database, and uses Redis once it is up (P3)', async () => {
    await proxy.set('refuse');
    const late = await startTestGateway(
      { REDIS_URL: `redis://127.0.0.1:${proxy.port}`, RIALTO_QUEUE_PREFIX: 'bull-late' },
      gateway,
    );
    try {
      expect(late.log.join('')).toContain('REDIS_URL: the server does not answer');
      expect((await late.call('GET', '/readyz')).body.checks.queue.status).toBe('degraded');
      const configuration = { returnImmediately: true };
      const { task } = await rpc(late, 'SendMessage', { message: userMessage('late'), configuration });
      await completed([task.id]);
      await proxy.set('pass');
      await eventually(
        () => admin.keys('bull-late:*'),
        (keys) => keys.length > 0,
      );
      await eventually(
        () => late.call('GET', '/readyz'),
        ({ body }) => body.checks.queue.status === 'ok',
      );
    } finally {
      await late.close();
    }
  });

  it('is unreachable when the process stops: it still stops', async () => {
    const second = await startTestGateway(
      { REDIS_URL: `redis://127.0.0.1:${proxy.port}`, RIALTO_QUEUE_PREFIX: 'bull-left' },
      gateway,
    );
    const { workers } = second.gateway.get(WorkerHost) as unknown as { workers: Map<string, Worker> };
    const states = () =>
      Promise.all(
        [...workers.values()].map(async (worker) => {
          const { blockingConnection: line } = worker.getBackend() as unknown as {
            blockingConnection: RedisConnection;
          };
          return (await line.client).status;
        }),
      );
    await proxy.set('refuse');
    await eventually(states, (all) => all.includes('reconnecting'));
    await second.close();
  });
});

it('F16 a queue that refuses to deliver jobs is polled with pauses, and delivers them when it can', async () => {
  const gateway = await startTestGateway({ REDIS_URL: '' });
  try {
    await publish(gateway);
    const [{ body }] = await gateway.sql(
      `select pg_get_functiondef(p.oid) as body
       from pg_proc p
       where proname = 'move_to_active' and pronamespace = 'bullmq'::regnamespace`,
    );
    await gateway.sql('create sequence bullmq.asked');
    // A sequence keeps its count when its transaction is rolled back.
    const refusing = `begin perform nextval('bullmq.asked'); raise exception 'not now'; end`;
    await gateway.sql(body.replace(/AS \$function\$.*\$function\$/s, `AS $function$${refusing}$function$`));
    const configuration = { returnImmediately: true };
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x'), configuration });
    const asked = async () => Number((await gateway.sql('select last_value from bullmq.asked'))[0].last_value);
    await eventually(asked, (count) => count > 20);
    const before = await asked();
    await wait(3_000);
    // A few workers, once a second each; without pauses there would be thousands.
    expect((await asked()) - before).toBeLessThan(60);
    await gateway.sql(body);
    await eventually(
      () => gateway.sql('select status_state from a2a_tasks where id = $1', [task.id]),
      ([row]) => row!.status_state === 'completed',
    );
  } finally {
    await gateway.close();
  }
});
