import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { JobProducer } from '../../../src/platform/jobs/job-producer.js';
import { TaskQuota } from '../../../src/tasks/run/task-quota.js';
import { publish, rpc, rpcCall, userMessage } from '../../support/clients/a2a.js';
import { Board } from '../../support/gateway/board.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { never } from '../../support/stubs/stub-behaviours.js';

describe('an org with services that never answer', () => {
  let gateway: TestGateway;
  const silent = createServer(() => undefined);
  let others: string;

  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_RATE_LIMIT_PRINCIPAL: '100000', RIALTO_RATE_LIMIT_ORG: '100000' });
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    others = await gateway.tokenOf('acme', 'eve', 'admin');
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`;
    await publish(gateway, { name: 'tarpit', executor: { kind: 'http', url } }, others);
    await publish(gateway, { name: 'prompt' }, others);
    await publish(gateway);
  });
  afterAll(async () => {
    silent.closeAllConnections();
    silent.close();
    await gateway.close();
  });

  it('abuse 36 is the only one that waits: the tasks of others are completed, also of other members', async () => {
    const configuration = { returnImmediately: true };
    const send = (agent: string, token?: string) =>
      rpc(gateway, 'SendMessage', { message: userMessage('x'), configuration }, { agent, token });
    const many = (count: number, token: string) =>
      Promise.all(Array.from({ length: count }, () => send('tarpit', token)));
    const alike = await gateway.tokenOf('acme', 'alike', 'admin');
    await many(150, others);
    const { task } = await send('echo');
    const done = await eventually(
      () => rpc(gateway, 'GetTask', { id: task.id }),
      ({ status }) => status.state === 'TASK_STATE_COMPLETED',
    );
    expect(done.status.state).toBe('TASK_STATE_COMPLETED');
    const working = async (): Promise<number> => {
      const [row] = await gateway.sql<{ count: number }>(
        `select count(*)::int as count from a2a_tasks where agent_name = 'tarpit' and lease_owner is not null`,
      );
      return row!.count;
    };
    await eventually(working, (count) => count >= 100);
    await wait(1_500); // sweeps run and claim no more
    await eventually(working, (count) => count === 100);
    await many(60, alike);
    await eventually(working, (count) => count >= 120);
    const other = await gateway.tokenOf('acme', 'adam', 'admin');
    const { task: theirs } = await send('prompt', other);
    await eventually(
      () => rpc(gateway, 'GetTask', { id: theirs.id }, { agent: 'prompt', token: other }),
      ({ status }) => status.state === 'TASK_STATE_COMPLETED',
    );
    await eventually(working, (count) => count === 120);
    await gateway.sql(
      `update a2a_tasks
       set status_state = 'failed', next_at = null, lease_owner = null, lease_until = null
       where agent_name = 'tarpit'`,
    );
  });
});

describe('an org that sends more than the workers can do', () => {
  const configuration = { returnImmediately: true };
  const params = () => ({ message: { ...userMessage('x'), messageId: 'm' }, configuration });
  const states = (gateway: TestGateway, agent: string, state: string) =>
    gateway.sql<{ id: string }>('select id from a2a_tasks where agent_name = $1 and status_state = $2', [agent, state]);

  it('abuse 36 is refused above its share with a Retry-After, and others are not', async () => {
    const gateway = await startTestGateway({
      RIALTO_MAX_OPEN_TASKS_PER_ORG: '20',
      RIALTO_MAX_OPEN_TASKS: '25',
      RIALTO_ROLE: 'api',
    });
    try {
      const others = await gateway.tokenOf('acme', 'eve', 'admin');
      await publish(gateway, { name: 'flood' }, others);
      await publish(gateway);
      const flood = (key?: string) =>
        rpcCall(gateway, 'SendMessage', params(), {
          agent: 'flood',
          token: others,
          ...(key && { headers: { 'idempotency-key': key } }),
        });
      const first = await flood('first');
      const answers = await Promise.all(Array.from({ length: 40 }, () => flood()));
      const refused = answers.filter(({ status }) => status === 429);
      // A concurrent count may miss tasks that are being created.
      expect(refused.length).toBeGreaterThan(15);
      expect(refused[0]!.headers.get('retry-after')).toBe('5');
      expect(refused[0]!.body.error.message).toContain('20 open tasks');
      // An accepted key is answered as before.
      const { body } = await rpcCall(gateway, 'SendMessage', params(), {
        agent: 'flood',
        token: others,
        headers: { 'idempotency-key': 'first' },
      });
      expect(body.error ?? body.result.task.id).toBe(first.body.result.task.id);
      // A task that was being created during a count counts twice until the next count.
      await eventually(
        () => rpcCall(gateway, 'SendMessage', params()),
        ({ status }) => status === 200,
      );
      const full = await eventually(
        () => rpcCall(gateway, 'SendMessage', params()),
        ({ status }) => status !== 200,
      );
      expect([full.status, full.headers.get('retry-after')]).toEqual([503, '5']);
      const [{ open }] = await gateway.sql('select count(*)::int as open from a2a_tasks where next_at is not null');
      expect(open).toBeLessThanOrEqual(30);
      await gateway.sql(`update a2a_tasks set status_state = 'completed', next_at = null`);
      await eventually(flood, ({ status }) => status === 200);
      await rpc(gateway, 'SendMessage', params());
    } finally {
      await gateway.close();
    }
  });

  it.each([
    ['the queue', { pause: true }],
    ['sweeps alone', { pause: false }],
  ])('abuse 36 does not delay others: their tasks are completed before its backlog, by %s', async (_by, { pause }) => {
    const gateway = await startTestGateway();
    try {
      const others = await gateway.tokenOf('acme', 'eve', 'admin');
      const colleague = await gateway.tokenOf('acme', 'adam', 'admin');
      await publish(gateway, { name: 'flood' }, others);
      await publish(gateway, { name: 'calm' }, others);
      await publish(gateway);
      const board = new Board(gateway);
      const enqueue = jest.spyOn(gateway.gateway.get(JobProducer), 'tryEnqueue');
      if (pause) await board.turn('task-execution', 'pause');
      else enqueue.mockResolvedValue(false);
      const send = (agent: string, token?: string) => rpc(gateway, 'SendMessage', params(), { agent, token });
      const sent: { task: { id: string } }[] = [];
      for (let round = 0; round < 15; round++)
        sent.push(...(await Promise.all(Array.from({ length: 40 }, () => send('flood', others)))));
      sent.push(...(await Promise.all(Array.from({ length: 10 }, () => send('calm', colleague)))));
      sent.push(...(await Promise.all(Array.from({ length: 10 }, () => send('echo')))));
      // Sweeps also enqueue, for tasks that have been due for some time.
      const lineOf = (id: string) =>
        enqueue.mock.calls.find(([, payload]) => JSON.stringify(payload).includes(id))?.[2].line;
      const lines = await eventually(
        () => sent.slice(-21).map(({ task }) => lineOf(task.id)),
        (all) => !pause || !all.includes(undefined),
      );
      if (pause) expect(lines).toEqual([2, ...Array(10).fill(1), ...Array(10).fill(0)]);
      if (pause) await board.turn('task-execution', 'resume');
      await eventually(
        async () => [await states(gateway, 'echo', 'completed'), await states(gateway, 'calm', 'completed')],
        (done) => done.every(({ length }) => length === 10),
      );
      // Counts the tasks of the backlog that were completed while the others waited.
      const [{ ahead }] = await gateway.sql(
        `with others as (
           select min(created_at) as sent, max(status_timestamp) as done from a2a_tasks where agent_name <> 'flood'
         )
         select count(*)::int as ahead from a2a_tasks, others
         where agent_name = 'flood' and status_state = 'completed' and status_timestamp between sent and done`,
      );
      expect(ahead).toBeLessThan(200);
      enqueue.mockRestore();
    } finally {
      await gateway.close();
    }
  });
});

describe('an org with five open tasks', () => {
  let gateway: TestGateway;
  let stub: StubAgent;
  const asleep = { agent: 'asleep' };

  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_MAX_OPEN_TASKS_PER_ORG: '5' });
    stub = await startStubAgent({ card: 'v03', name: 'remote', capabilities: { streaming: false } });
    await gateway.call('POST', '/api/a2a/agents', { url: stub.url, slug: 'remote', timeoutMs: 3_000 });
    await publish(gateway);
    await publish(gateway, { name: 'asleep', executor: { kind: 'echo', delayMs: 600_000 } });
    await publish(gateway, { name: 'asking', executor: { kind: 'echo', ask: 'Really?' } });
  });
  afterAll(async () => {
    await gateway.close();
    await stub.close();
  });

  const send = (options: { agent?: string }, more: object = {}, configuration = {}) =>
    rpcCall(gateway, 'SendMessage', { message: userMessage('x', { ...more }), configuration }, options);
  const invoke = () => gateway.call('POST', '/api/a2a/invoke', { agentCardId: 'remote', skillId: 'work' });
  const open = async (): Promise<number> => {
    const [row] = await gateway.sql('select count(*)::int as count from a2a_tasks where next_at is not null');
    return row.count;
  };
  const cancel = async () => {
    for (const { id } of await gateway.sql('select id from a2a_tasks where next_at is not null'))
      await rpc(gateway, 'CancelTask', { id }, asleep);
  };
  /** Waits until no task is open, and the gateway has counted that. */
  const none = async () => {
    await eventually(open, (count) => count === 0);
    const quota = gateway.gateway.get(TaskQuota) as unknown as { countOpenTasks(): Promise<void> };
    for (let count = 0; count < 2; count++) await quota.countOpenTasks(); // the first count may have started before
  };
  const refusals = (answers: readonly { status: number }[]) => answers.filter(({ status }) => status === 429).length;
  /** A concurrent count may miss tasks that are being created. */
  const missed = 3;

  it('abuse 36 gets no more by sends that wait for their answer', async () => {
    let refused = 0;
    const sends = Array.from({ length: 40 }, () =>
      send(asleep).then((answer) => {
        if (answer.status === 429) refused += 1;
        return answer;
      }),
    );
    await eventually(
      async () => refused + (await open()),
      (decided) => decided === sends.length,
    );
    await cancel();
    const answers = await Promise.all(sends);
    expect(refusals(answers)).toBeGreaterThanOrEqual(35 - missed);
    expect(refusals(answers)).toBeLessThanOrEqual(35);
  });

  it('abuse 36 gets the place of a canceled task at once', async () => {
    await none();
    const quota = gateway.gateway.get(TaskQuota) as unknown as {
      timer: NodeJS.Timeout;
      countOpenTasks(): Promise<void>;
    };
    clearInterval(quota.timer);
    try {
      const sends = Array.from({ length: 5 }, () => send(asleep));
      await eventually(open, (count) => count === 5);
      await quota.countOpenTasks();
      await cancel();
      await Promise.all(sends);
      expect((await send({ agent: 'echo' })).status).toBe(200);
    } finally {
      quota.timer = setInterval(() => void quota.countOpenTasks(), 1_000);
    }
  });

  it('abuse 36 gets the place of an ended task at once, counted or not', async () => {
    await none();
    for (let count = 0; count < 30; count++) expect((await send({ agent: 'echo' })).status).toBe(200);
  });

  it('abuse 36 gets no more by answers to questions and calls of registered agents, and calls no agent', async () => {
    await none();
    const asked = (await send({ agent: 'asking' })).body.result.task;
    const sent = await Promise.all(Array.from({ length: 5 }, () => send(asleep, {}, { returnImmediately: true })));
    expect(refusals(sent)).toBe(0);
    for (const configuration of [{}, { returnImmediately: true }])
      expect((await send({ agent: 'asking' }, { taskId: asked.id }, configuration)).status).toBe(429);
    expect((await invoke()).status).toBe(429);
    expect(stub.requests).toEqual([]);
    await cancel();
    await none();
    expect((await send({ agent: 'asking' }, { taskId: asked.id })).body.result.task.status.state).toBe(
      'TASK_STATE_COMPLETED',
    );
  });

  it('abuse 36 gets no more by concurrent calls that continue as tasks: the excess is canceled', async () => {
    await none();
    stub.set(never);
    const answers = await Promise.all(Array.from({ length: 15 }, invoke));
    expect(refusals(answers)).toBeGreaterThanOrEqual(10 - missed);
    expect(await open()).toBeLessThanOrEqual(5 + missed);
    // A call that began after others had become tasks was refused before it reached the agent.
    const sent = stub.requests.filter(({ operation }) => operation === 'send').length;
    await stub.waitForCancels(refusals(answers) - (answers.length - sent));
  });
});
