import { setTimeout as wait } from 'node:timers/promises';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { JobProducer } from '../../../src/platform/jobs/job-producer.js';
import { QueueState } from '../../../src/platform/jobs/queue-state.js';
import { Board } from '../../support/gateway/board.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { HttpService } from '../../support/stubs/http-service.js';
import { startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';

const tasks = 'task-execution';
const hooks = 'webhook-delivery';
/** Longer than two sweeps, which find due work without the queue. */
const twoSweepsMs = 3_500;

describe('Bull Board', () => {
  let gateway: TestGateway;
  let service: HttpService;
  let sink: WebhookSink;
  let board: Board;

  beforeAll(async () => {
    gateway = await startTestGateway();
    board = new Board(gateway);
    service = await HttpService.start();
    sink = await startWebhookSink();
    await publish(gateway);
    await publish(gateway, { name: 'slow', executor: { kind: 'echo', delayMs: 1_500 } });
    await publish(gateway, { name: 'svc', executor: { kind: 'http', url: service.url } });
  });
  afterAll(async () => {
    await sink.close();
    await service.close();
    await gateway.close();
  });

  const send = async (agent: string, push?: object): Promise<string> => {
    const configuration = { returnImmediately: true, ...(push && { taskPushNotificationConfig: push }) };
    const { task } = await rpc(
      gateway,
      'SendMessage',
      { message: userMessage('canary-words'), configuration },
      { agent },
    );
    return task.id;
  };
  const stateOf = async (taskId: string): Promise<string> =>
    (await gateway.sql('select status_state as state from a2a_tasks where id = $1', [taskId]))[0].state;
  const ended = (taskId: string, state = 'completed') =>
    eventually(
      () => stateOf(taskId),
      (now) => now === state,
    );
  const deliveries = (taskId: string) =>
    gateway.sql(`select status, attempts, next_at from webhook_deliveries where task_id = $1 order by seq`, [taskId]);
  const posted = (count: number) =>
    eventually(
      () => sink.received.length,
      (now) => now >= count,
    );

  it('finds its assets behind a proxy that removes a path prefix (P6)', async () => {
    const behind = await startTestGateway({ RIALTO_PUBLIC_URL: 'https://rialto.example/gw' }, gateway);
    try {
      const page = await behind.call('GET', '/admin/queues/');
      expect([page.status, page.body]).toEqual([200, expect.stringContaining('<base href="/gw/admin/queues/"')]);
    } finally {
      await behind.close();
    }
  });

  it('shows a finished task as a completed job, with its steps, its log lines and its task', async () => {
    const id = await send('slow');
    const [job] = await board.jobsOf(tasks, 'completed', id);
    expect(job).toMatchObject({
      data: { taskId: id },
      progress: { state: 'completed', events: 4 },
      externalUrl: { displayText: 'Task', href: `${gateway.url}/api/a2a/tasks/${id}` },
    });
    expect(await board.logs(tasks, job.id)).toEqual([`task ${id} of agent slow: completed after 4 events`]);
    const { status, body } = await gateway.call('GET', new URL(job.externalUrl.href).pathname);
    expect([status, body.id]).toEqual([200, id]);
  });

  it('shows a failed run as a failed job with its reason, without message texts', async () => {
    service.answer = () => ({ status: 400, body: 'canary-words' });
    const id = await send('svc');
    await ended(id, 'failed');
    const [job] = await board.jobsOf(tasks, 'failed', id);
    expect(job).toMatchObject({
      failedReason: 'remote_error: The remote side answered with an error',
      attempts: 1,
      progress: { state: 'failed' },
    });
    const lines = await board.logs(tasks, job.id);
    expect(lines).toEqual([`task ${id} of agent svc: failed after 3 events`]);
    expect(JSON.stringify([job, lines])).not.toContain('canary');
  });

  it('shows tasks that arrive together as one job with their number, and fails it when one of them fails', async () => {
    service.answer = () => ({ status: 400, body: 'canary-words' });
    await board.turn('sweeps', 'pause'); // a sweep would run the tasks, each by itself
    const producer = gateway.gateway.get(JobProducer);
    let take = (isTaken: boolean): void => void isTaken;
    // The queue takes the first job only after all tasks are stored.
    const enqueue = jest
      .spyOn(producer, 'tryEnqueue')
      .mockImplementationOnce(() => new Promise((resolve) => (take = resolve)));
    const first = await send('slow');
    const ids = await Promise.all([...Array(5).fill('echo'), 'svc'].map((agent: string) => send(agent)));
    take(false);
    enqueue.mockRestore();
    const [job] = await eventually(
      async () => (await board.jobs(tasks, 'failed')).filter(({ data }) => data.taskIds?.includes(ids[0])),
      ({ length }) => length === 1,
    );
    expect([...job.data.taskIds].sort()).toEqual([...ids].sort());
    expect(job).toMatchObject({
      failedReason: `task ${ids.at(-1)}: remote_error: The remote side answered with an error`,
      progress: { tasks: 6, failed: 1 },
      externalUrl: { displayText: '6 tasks', href: `${gateway.url}/api/a2a/tasks` },
    });
    expect(await board.logs(tasks, job.id)).toEqual([
      expect.stringMatching(/^6 tasks: \d run here, 1 of them failed$/),
    ]);
    await board.turn('sweeps', 'resume');
    for (const id of [first, ...ids.slice(0, -1)]) await ended(id); // a sweep finds the first
    expect(await stateOf(ids.at(-1)!)).toBe('failed');
  });

  it('shows push configurations that become due together as one job, and a retry attempts all of them', async () => {
    const ids = await Promise.all(Array.from({ length: 5 }, () => send('echo', { url: sink.url })));
    const settled = (state: string, of: readonly string[]) =>
      eventually(
        async () => (await Promise.all(of.map(deliveries))).flat(),
        (rows) => rows.length === 3 * of.length && rows.every(({ status }) => status === state),
      );
    await settled('delivered', ids);
    await board.turn('sweeps', 'pause'); // a sweep would deliver each configuration by itself
    let take = (isTaken: boolean): void => void isTaken;
    // The queue takes the first job only after all deliveries are due.
    const enqueue = jest
      .spyOn(gateway.gateway.get(JobProducer), 'tryEnqueue')
      .mockImplementationOnce(() => new Promise((resolve) => (take = resolve)));
    sink.script([503], true);
    const replay = await gateway.call('POST', '/api/webhooks/deliveries/replay', { state: 'delivered' });
    expect(replay.body).toEqual({ replayed: 15, nextCursor: null });
    take(false);
    enqueue.mockRestore();
    const [job] = await eventually(
      async () => (await board.jobs(hooks, 'failed')).filter(({ data }) => data.configs?.length === 4),
      ({ length }) => length === 1,
    );
    expect(job.externalUrl).toEqual({ displayText: '4 configurations', href: `${gateway.url}/api/a2a/tasks` });
    expect(job.failedReason.match(/status_503: delivery [\w-]+, attempt/g)).toHaveLength(4);
    expect(await board.logs(hooks, job.id)).toEqual(['4 configurations: 0 delivered, 4 of them failed']);

    sink.script([]);
    expect((await board.press(hooks, job.id, 'retry')).status).toBe(204);
    await eventually(
      () => board.logs(hooks, job.id),
      (lines) => /^4 configurations: \d+ delivered, 0 of them failed$/.test(lines[1] ?? ''),
    );
    await settled(
      'delivered',
      job.data.configs.map(({ taskId }: { taskId: string }) => taskId),
    );
    await board.turn('sweeps', 'resume');
    await settled('delivered', ids); // a sweep finds the first
  });

  it('shows at most one job of sweeps for a second, which runs those that are due at its time', async () => {
    const done = await eventually(
      async () => (await board.jobs('sweeps', 'completed')).filter(({ name }) => name === 'every 1000 ms'),
      ({ length }) => length > 10,
    );
    const swept = done.map(({ id, returnValue }) => [
      Math.floor(Number(id.split(':').at(-1)) / 1_000),
      returnValue.sweeps,
    ]);
    const seconds = swept.map(([second]) => second as number);
    // No second comes twice, unless the queue was late and left one out: then a process schedules the jobs anew.
    expect(swept.length).toBeLessThanOrEqual(Math.max(...seconds) - Math.min(...seconds) + 1);
    expect(swept.filter(([second]) => second % 2 === 0).length).toBeGreaterThan(0);
    for (const [second, sweeps] of swept) {
      expect(sweeps).toContain('thread.due');
      expect([second, sweeps.includes('card.refresh')]).toEqual([second, second % 2 === 0]);
      expect([second, sweeps.includes('mcp.servers')]).toEqual([second, second % 5 === 0]);
    }
  });

  it('lets a process read when the next sweeps are due', async () => {
    const state = gateway.gateway.get(QueueState);
    const dueMs = await eventually(
      () => state.nextDueMs('sweep.run', 'every 1000 ms'),
      (ms) => ms !== undefined && ms > 0,
    );
    expect(dueMs).toBeLessThanOrEqual(1_000);
    expect(await state.nextDueMs('sweep.run', 'every 1001 ms')).toBeUndefined();
  });

  it('shows work in another process as an active job until it is over', async () => {
    let release = (): void => undefined;
    service.answer = () => new Promise((resolve) => (release = () => resolve({ status: 400 })));
    const id = await send('svc');
    await board.jobsOf(tasks, 'active', id);
    await eventually(
      async () => (await board.jobs(tasks, 'active')).find(({ data }) => data.taskId === id)?.progress,
      (progress) => progress?.state === 'working',
    );
    release();
    await board.jobsOf(tasks, 'failed', id);
  });

  it('shows each failed attempt of a delivery; retry and promote try at once, and remove changes no row', async () => {
    sink.script([503], true);
    const id = await send('echo', { url: `${sink.url}/hook?key=canary`, token: 'canary-token' });
    const [first] = await board.jobsOf(hooks, 'failed', id);
    expect(first.failedReason).toMatch(/^status_503: delivery [\w-]+, attempt 1, \d+ ms; tried again in \d+ s$/);
    expect(await board.logs(hooks, first.id)).toEqual([`task ${id}: 0 delivered`, first.failedReason]);
    expect(JSON.stringify(first)).not.toContain('canary');

    // The second attempt is due minutes after the first; until then a delayed job represents it.
    await posted(2);
    const [delayed] = await eventually(
      () => board.jobs(hooks, 'delayed'),
      (all) => all.some(({ delay }) => delay > 60_000),
    );
    expect((await deliveries(id))[0]).toMatchObject({ status: 'pending', attempts: 2 });

    expect((await board.press(hooks, first.id, 'retry')).status).toBe(204);
    await posted(3);
    await eventually(
      async () => (await deliveries(id))[0].attempts as number,
      (attempts) => attempts === 3,
    );
    const shown = await board.jobsOf(hooks, 'failed', id, 2);
    const before = await deliveries(id);
    for (const job of shown) expect((await board.press(hooks, job.id, 'clean')).status).toBe(204);
    expect(await deliveries(id)).toEqual(before);

    sink.script([]);
    const [later] = await board.jobs(hooks, 'delayed');
    expect(later.data).toEqual(delayed.data);
    expect((await board.press(hooks, later.id, 'promote')).status).toBe(204);
    await eventually(
      () => deliveries(id),
      (rows) => rows.every(({ status }) => status === 'delivered'),
    );
  });

  it.each([
    [tasks, () => send('echo'), (id: string) => stateOf(id), 'submitted', 'completed'],
    [
      hooks,
      () => send('echo', { url: sink.url }),
      async (id: string) => (await deliveries(id)).at(-1)?.status,
      'pending',
      'delivered',
    ],
  ])(
    'a pause of %s holds its work, also without the queue, until it is resumed',
    async (queue, begin, stateOf, ...states) => {
      expect((await board.turn(queue, 'pause')).status).toBe(200);
      expect(await board.isPaused(queue)).toBe(true);
      const id = await begin();
      await eventually(
        () => stateOf(id),
        (state) => state === states[0],
      );
      await wait(twoSweepsMs); // two sweeps find it and leave it
      expect(await stateOf(id)).toBe(states[0]);
      expect((await board.turn(queue, 'resume')).status).toBe(200);
      await eventually(
        () => stateOf(id),
        (state) => state === states[1],
      );
    },
  );

  it('a retry of an ended task changes nothing and logs that', async () => {
    const id = await send('echo');
    const [job] = await board.jobsOf(tasks, 'completed', id);
    const row = await gateway.sql('select * from a2a_tasks where id = $1', [id]);
    expect((await board.press(tasks, job.id, 'retry')).status).toBe(204);
    await eventually(
      () => board.logs(tasks, job.id),
      (lines) => lines.length === 2 && lines[1]!.includes('nothing to do'),
    );
    expect(await gateway.sql('select * from a2a_tasks where id = $1', [id])).toEqual(row);
  });
});
