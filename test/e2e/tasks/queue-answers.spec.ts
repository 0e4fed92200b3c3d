import { ServerResponse } from 'node:http';
import { JobProducer } from '../../../src/platform/jobs/job-producer.js';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import type { GatewayProcess } from '../../support/gateway/process.js';
import { startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';

const configuration = { returnImmediately: true };

/** Tests processes that answer and then end, on one database: later processes keep the promises of the answers. */
describe('accepted tasks', () => {
  let home: TestGateway;
  let sink: WebhookSink;

  beforeAll(async () => {
    home = await startTestGateway({ RIALTO_ROLE: 'api' });
    sink = await startWebhookSink();
    await publish(home);
    await publish(home, { name: 'slow', executor: { kind: 'echo', delayMs: 1_500 } });
    await publish(home, { name: 'long', executor: { kind: 'echo', delayMs: 8_000 } });
  });
  afterAll(async () => {
    await sink.close();
    await home.close();
  });

  const start = async (role: string): Promise<{ url: string; process: GatewayProcess }> => {
    const one = home.beside({ RIALTO_ROLE: role });
    return { url: await one.ready, process: one };
  };
  const stop = async ({ child, ended }: GatewayProcess, signal: NodeJS.Signals) => {
    child.kill(signal);
    return ended;
  };
  const keyed = (index: number, round: string) => ({
    message: { ...userMessage(`text ${index}`), messageId: `${round}-${index}` },
    configuration: { ...configuration, taskPushNotificationConfig: { url: `${sink.url}/${round}` } },
  });
  /** Sends to a process and returns the ids of the answered tasks. */
  const sendAll = (url: string, round: string, count = 20): Promise<string[]> =>
    Promise.all(
      Array.from({ length: count }, async (_, index) => {
        const response = await fetch(`${url}/a2a/agents/${index % 2 ? 'echo' : 'slow'}`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${home.token}`,
            'content-type': 'application/json',
            'idempotency-key': `${round}-${index}`,
            'a2a-version': '1.0',
          },
          body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: keyed(index, round) }),
        });
        return ((await response.json()) as { result: { task: { id: string } } }).result.task.id;
      }),
    );
  const rows = (ids: readonly string[]) =>
    home.sql(
      `select t.id, t.status_state as state, t.crashes, t.lease_epoch as epoch,
         (select count(*)::int from a2a_task_events e where e.task_id = t.id and e.terminal) as ends
       from a2a_tasks t where t.id = any($1) order by t.id`,
      [ids as string[]],
    );
  const allEnd = (ids: readonly string[]) =>
    eventually(
      () => rows(ids),
      (all) => all.length === ids.length && all.every(({ state }) => state === 'completed'),
    );
  /** Checks that the end of each task reached the receiver, under one id for all repeats. */
  const allNotified = async (ids: readonly string[], round: string) => {
    const ends = () =>
      sink.received.filter(
        ({ path, body }) => path === `/${round}` && body.statusUpdate?.status.state === 'TASK_STATE_COMPLETED',
      );
    await eventually(
      () => new Set(ends().map(({ body }) => body.statusUpdate.taskId as string)),
      ({ size }) => size === ids.length,
    );
    expect(new Set(ends().map(({ headers }) => headers['webhook-id'])).size).toBe(ids.length);
  };
  const count = async (sql: string, values: unknown[]): Promise<number> =>
    (await home.sql<{ count: number }>(`select count(*)::int as count from ${sql}`, values))[0]!.count;

  it('AN-94 the job is enqueued before the answer is sent', async () => {
    const order: string[] = [];
    const enqueue = jest
      .spyOn(home.gateway.get(JobProducer), 'tryEnqueue')
      .mockImplementation((_job, { taskId }: any) => {
        order.push(`rung ${taskId}`);
        return Promise.resolve(true);
      });
    const { end } = ServerResponse.prototype;
    const answer = jest.spyOn(ServerResponse.prototype, 'end').mockImplementation(function (this: any, ...parts: any) {
      const id = /"task":\{"id":"([^"]+)"/.exec(String(parts[0]))?.[1];
      if (id) order.push(`answered ${id}`);
      return Reflect.apply(end, this, parts);
    });
    const { task } = await rpc(home, 'SendMessage', { message: userMessage('x'), configuration });
    for (const spy of [enqueue, answer]) spy.mockRestore();
    expect(order).toEqual([`rung ${task.id}`, `answered ${task.id}`]);
  });

  it('AN-81, AN-94 of a process that is killed after its last answer: all exist, and each ends once', async () => {
    const { url, process } = await start('all');
    const recorded = () => count(`audit_events where type = 'task_submit'`, []);
    const before = await recorded();
    const ids = await sendAll(url, 'killed');
    await stop(process, 'SIGKILL');
    expect(await rows(ids)).toHaveLength(ids.length);
    expect(await count('a2a_idempotency_keys where task_id = any($1)', [ids])).toBe(ids.length);
    expect(await count('push_configs where task_id = any($1)', [ids])).toBe(ids.length);
    expect(await recorded()).toBe(before + ids.length);
    const next = await start('all');
    for (const { ends } of await allEnd(ids)) expect(ends).toBe(1);
    await allNotified(ids, 'killed');
    expect(await sendAll(next.url, 'killed')).toEqual(ids);
    await stop(next.process, 'SIGTERM');
  });

  it('AN-81 of a process that is stopped after its last answer: nothing stays running or is lost', async () => {
    const { url, process } = await start('all');
    const ids = await sendAll(url, 'stopped');
    const { code, stderr } = await stop(process, 'SIGTERM');
    expect([code, stderr.filter((line) => /"level":(50|60)/.test(line))]).toEqual([0, []]);
    const left = await home.sql('select id from a2a_tasks where id = any($1) and lease_until is not null', [ids]);
    expect(left).toEqual([]);
    const next = await start('worker');
    for (const { ends, crashes } of await allEnd(ids)) expect([ends, crashes]).toEqual([1, 0]);
    await allNotified(ids, 'stopped');
    await stop(next.process, 'SIGTERM');
  });

  it('AN-102 of a worker that is killed in the middle: its task is taken over, and ends once', async () => {
    const first = await start('worker');
    const { task } = await rpc(home, 'SendMessage', { message: userMessage('x'), configuration }, { agent: 'long' });
    await eventually(
      () => rows([task.id]),
      ([row]) => row.state === 'working' && row.epoch === 1,
    );
    await stop(first.process, 'SIGKILL');
    const next = await start('worker');
    expect(await allEnd([task.id])).toEqual([{ id: task.id, state: 'completed', crashes: 1, epoch: 2, ends: 1 }]);
    await stop(next.process, 'SIGTERM');
  });
});
