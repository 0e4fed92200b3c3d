import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import type { Worker } from 'bullmq';
import { WorkerHost } from '../../../src/platform/jobs/worker-host.js';
import { TaskAgents } from '../../../src/registry/task-agents.js';
import { TaskRunner } from '../../../src/tasks/run/task.runner.js';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { Board } from '../../support/gateway/board.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import type { GatewayProcess } from '../../support/gateway/process.js';

const tasks = 'task-execution';

/** Tests a process that takes requests, and workers that start and end, on one queue. */
describe('workers that die', () => {
  let home: TestGateway;
  let board: Board;

  beforeAll(async () => {
    home = await startTestGateway({ RIALTO_ROLE: 'api' });
    board = new Board(home);
    await publish(home);
    await publish(home, { name: 'short', executor: { kind: 'echo', delayMs: 1_500 } });
    // Longer than the time that a stopping worker has for its tasks, so that it cannot complete this one.
    await publish(home, { name: 'long', executor: { kind: 'echo', delayMs: 59_000 } });
    await publish(home, { name: 'asleep', executor: { kind: 'echo', delayMs: 600_000 } });
  });
  afterAll(() => home.close());

  const start = async (): Promise<GatewayProcess> => {
    const worker = home.beside({ RIALTO_ROLE: 'worker' });
    await worker.ready;
    return worker;
  };
  const send = async (agent: string): Promise<string> => {
    const configuration = { returnImmediately: true };
    return (await rpc(home, 'SendMessage', { message: userMessage('x'), configuration }, { agent })).task.id;
  };
  const row = async (id: string) =>
    (
      await home.sql(
        `select status_state as state, crashes, lease_owner as owner, lease_epoch as epoch, status_message as message,
           next_at <= now() as due from a2a_tasks where id = $1`,
        [id],
      )
    )[0];
  /** Waits until a task is leased and its claim is checked. */
  const whenHeld = (id: string, epoch: number) =>
    eventually(
      () => row(id),
      (now) => now.epoch >= epoch && now.owner !== null && now.state !== 'submitted',
    );

  it('AN-78, F9 three of them with the same task: it finally fails, although the queue never gives up', async () => {
    const id = await send('asleep');
    for (let crash = 1; crash <= 3; crash++) {
      const worker = await start();
      await whenHeld(id, crash);
      worker.child.kill('SIGKILL');
      await worker.ended;
    }
    const last = await start();
    const end = await eventually(
      () => row(id),
      ({ state }) => state === 'failed',
    );
    const parts = [{ text: 'exceeded 3 attempts: its worker was lost each time' }];
    expect(end).toMatchObject({ crashes: 3, message: { parts, metadata: { errorCode: 'poisoned' } } });
    expect((await rpc(home, 'GetTask', { id }, { agent: 'asleep' })).status.state).toBe('TASK_STATE_FAILED');
    last.child.kill('SIGTERM');
    expect((await last.ended).code).toBe(0);
  });

  it('F12 a stopping one ends what it can within its time, releases the rest, and breaks nothing', async () => {
    const worker = await start();
    const short = await Promise.all(Array.from({ length: 12 }, () => send('short')));
    const long = await Promise.all(Array.from({ length: 3 }, () => send('long')));
    // A task that was claimed and has not begun is released at once when the worker stops.
    await eventually(
      () => Promise.all([...short, ...long].map(row)),
      (rows) => rows.every(({ epoch, state }) => epoch === 1 && state !== 'submitted'),
    );
    worker.child.kill('SIGTERM');
    await worker.said('SIGTERM: draining');
    await wait(3_000); // the time of its last request for a job is not visible from outside
    const late = await send('short');
    expect((await worker.ended).code).toBe(0);
    for (const id of short) expect(await row(id)).toMatchObject({ state: 'completed', crashes: 0, epoch: 1 });
    for (const id of long)
      expect(await row(id)).toMatchObject({ state: 'working', crashes: 0, owner: null, due: true });
    expect(await row(late)).toMatchObject({ state: 'submitted', epoch: 0 });
    for (const id of long) await rpc(home, 'CancelTask', { id }, { agent: 'long' });
  });

  it('F8 one that dies after its commit: the job is delivered again, and changes nothing', async () => {
    const worker = await start();
    const running = await send('asleep');
    await whenHeld(running, 1);
    await board.jobsOf(tasks, 'active', running);
    worker.child.kill('SIGKILL');
    await worker.ended;
    await rpc(home, 'CancelTask', { id: running }, { agent: 'asleep' });
    const next = await start();
    const [job] = await eventually(
      async () => (await board.jobs(tasks, 'completed')).filter(({ data }) => data.taskId === running),
      ({ length }) => length > 0,
      70_000,
    );
    expect((await board.logs(tasks, job.id)).at(-1)).toContain('nothing to do');
    const [{ ends }] = await home.sql(
      'select count(*)::int as ends from a2a_task_events where task_id = $1 and terminal',
      [running],
    );
    expect(ends).toBe(1);
    next.child.kill('SIGTERM');
    await next.ended;
  });
});

describe('a process that is stopped while it begins a task', () => {
  it.each([
    ['a claimed task', true],
    ['a task with a waiting sender', false],
  ])('F12 %s is due at once for another process, and no attempt is lost', async (_which, isClaimed) => {
    const gateway = await startTestGateway();
    try {
      await publish(gateway, { name: 'asleep', executor: { kind: 'echo', delayMs: 600_000 } });
      const runner = gateway.gateway.get(TaskRunner);
      const agents = gateway.gateway.get(TaskAgents);
      const asked = new AbortController();
      const permitted = new AbortController();
      const over = ({ signal }: AbortController) => signal.aborted || once(signal, 'abort');
      if (isClaimed) {
        const senderOf = agents.senderOf.bind(agents);
        jest.spyOn(agents, 'senderOf').mockImplementation(async (...of) => {
          asked.abort();
          await over(permitted);
          return senderOf(...of);
        });
      }
      const configuration = { returnImmediately: isClaimed };
      const message = userMessage('x');
      const send = () => rpc(gateway, 'SendMessage', { message, configuration }, { agent: 'asleep' });
      if (isClaimed) await send();
      else asked.abort();
      await over(asked);
      runner.onModuleDestroy();
      if (!isClaimed) await runner.beforeApplicationShutdown();
      const answer = isClaimed ? undefined : await send();
      permitted.abort();
      await runner.beforeApplicationShutdown();
      const [row] = await eventually(
        () =>
          gateway.sql(
            `select lease_owner as owner, lease_until as until, crashes, next_at <= now() as due from a2a_tasks
             where lease_epoch = 1 and lease_until is null`,
          ),
        ({ length }) => length === 1,
      );
      expect(row).toEqual({ owner: null, until: null, crashes: 0, due: true });
      if (answer) expect(answer.task.status.state).toBe('TASK_STATE_SUBMITTED');
    } finally {
      await gateway.close();
    }
  });
});

describe('a worker that requests no more jobs', () => {
  it('F16 is replaced when jobs wait for it, and only then', async () => {
    const gateway = await startTestGateway();
    try {
      await publish(gateway);
      const host = gateway.gateway.get(WorkerHost) as unknown as {
        timeouts: { wedgedMs: number };
        workers: Map<string, Worker>;
      };
      host.timeouts = { ...host.timeouts, wedgedMs: 2_000 };
      const wedged = host.workers.get('task.execute')!;
      const idle = host.workers.get('webhook.deliver')!;
      const backend = wedged.getBackend() as unknown as Record<string, unknown>;
      for (const verb of ['moveToActive', 'waitForJob']) backend[verb] = () => new Promise(() => undefined);
      const board = new Board(gateway);
      const configuration = { returnImmediately: true };
      const replaced = await eventually(
        async () => {
          await rpc(gateway, 'SendMessage', { message: userMessage('x'), configuration });
          return host.workers.get('task.execute')!;
        },
        (worker) => worker !== wedged,
      );
      const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x'), configuration });
      await board.jobsOf(tasks, 'completed', task.id);
      expect(replaced).toBe(host.workers.get('task.execute'));
      expect(host.workers.get('webhook.deliver')).toBe(idle);
    } finally {
      await gateway.close();
    }
  });
});
