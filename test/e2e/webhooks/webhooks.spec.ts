import { StreamResponse } from '@a2a-js/sdk';
import { legacyPushNotificationToV1StreamResponse } from '@a2a-js/sdk/compat/v0_3';
import { DeliveryStore } from '../../../src/webhooks/delivery/delivery.store.js';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { hurry, startWebhookSink, type Received, type WebhookSink } from '../../support/stubs/webhook-sink.js';
import { readEvents } from '../../support/gateway/event-rows.js';

const legacyMessage = (text: string) => ({
  kind: 'message',
  messageId: `m-${Math.random()}`,
  role: 'user',
  parts: [{ kind: 'text', text }],
});
/** Removes false values, which ProtoJSON omits. */
const withoutFalse = (body: object) =>
  JSON.parse(JSON.stringify(body, (_name, value: unknown) => (value === false ? undefined : value))) as object;
const old = { headers: { 'A2A-Version': '0.3' } };

describe('webhooks', () => {
  let gateway: TestGateway;
  let sink: WebhookSink;

  beforeAll(async () => {
    gateway = await startTestGateway();
    await publish(gateway);
    await publish(gateway, { name: 'chunks', executor: { kind: 'echo', delayMs: 60, chunks: 6 } });
    await publish(gateway, { name: 'asks', executor: { kind: 'echo', ask: 'Which colour?' } });
    await publish(gateway, { name: 'asleep', executor: { kind: 'echo', delayMs: 600_000 } });
  });
  beforeEach(async () => void (sink = await startWebhookSink()));
  afterEach(() => sink.close());
  afterAll(() => gateway.close());

  const got = (count: number): Promise<Received[]> =>
    eventually(
      () => sink.received,
      (all) => all.length >= count,
    );
  const send = async (text: string, agent: string, push: object = {}): Promise<string> => {
    const configuration = {
      returnImmediately: true,
      taskPushNotificationConfig: { url: `${sink.url}/hook`, ...push },
    };
    const message = userMessage(text);
    return (await rpc(gateway, 'SendMessage', { message, configuration }, { agent })).task.id;
  };
  const deliveries = (taskId: string) =>
    gateway.sql(
      `select id, seq, status, attempts, body, last_status, last_error
       from webhook_deliveries
       where task_id = $1
       order by config_id, seq`,
      [taskId],
    );
  /** Waits until a task has at least `count` deliveries, all ended, and returns them. */
  const ended = (taskId: string, count = 3) =>
    eventually(
      () => deliveries(taskId),
      (rows) => rows.length >= count && rows.every(({ status }) => status !== 'pending'),
    );
  const hurried = () => hurry(gateway);

  it('posts every event in its order, one at a time, as a StreamResponse that the SDK parses', async () => {
    sink.delay(30);
    const taskId = await send('one two three', 'chunks');
    await ended(taskId, 8);
    const [, ...events] = await readEvents(gateway.sql, taskId);
    expect(events.length).toBe(8);
    expect(sink.received.map(({ body }) => body)).toEqual(events);
    expect(sink.mostAtOnce()).toBe(1);
    for (const { body, headers } of sink.received) {
      expect(headers['content-type']).toBe('application/a2a+json');
      expect(StreamResponse.toJSON(StreamResponse.fromJSON(body))).toMatchObject(withoutFalse(body));
    }
    expect(StreamResponse.fromJSON(sink.received.at(-1)!.body).payload).toMatchObject({ $case: 'statusUpdate' });
  });

  it('RI-41: has the token, the credentials and a unique id', async () => {
    const authentication = { scheme: 'Bearer', credentials: 'cred-1' };
    await send('hi', 'echo', { token: 'token-1', authentication });
    const posts = await got(3);
    for (const { headers, path } of posts) {
      expect(path).toBe('/hook');
      expect(headers).toMatchObject({
        'x-a2a-notification-token': 'token-1',
        'a2a-notification-token': 'token-1',
        authorization: 'Bearer cred-1',
        'webhook-timestamp': expect.stringMatching(/^\d{10}$/),
      });
    }
    expect(new Set(posts.map(({ headers }) => headers['webhook-id'])).size).toBe(3);
  });

  it('sends no header for absent members', async () => {
    await send('hi', 'echo', { authentication: { scheme: 'Basic' } });
    const [{ headers }] = (await got(1)) as [Received];
    for (const name of ['authorization', 'x-a2a-notification-token', 'a2a-notification-token'])
      expect(headers[name]).toBeUndefined();
  });

  it('retries a refused post, byte for byte under the same id, before any later one', async () => {
    sink.script([503, 503, 200]);
    const taskId = await send('hi', 'echo');
    await got(1);
    await eventually(hurried, () => sink.received.length >= 5);
    const [first] = await ended(taskId);
    expect(first).toMatchObject({ status: 'delivered', attempts: 3, last_status: 200 });
    const [one, two, three, ...later] = sink.received;
    for (const { text, headers } of [two!, three!]) {
      expect(text).toBe(one!.text);
      expect(headers['webhook-id']).toBe(one!.headers['webhook-id']);
    }
    expect(later.map(({ body }) => Object.keys(body)[0])).toEqual(['artifactUpdate', 'statusUpdate']);
    const tries = await gateway.sql(
      'select number, status, error, duration_ms from webhook_attempts where delivery_id = $1 order by number',
      [first.id],
    );
    expect(tries).toEqual([
      { number: 1, status: 503, error: 'status_503', duration_ms: expect.any(Number) },
      { number: 2, status: 503, error: 'status_503', duration_ms: expect.any(Number) },
      { number: 3, status: 200, error: null, duration_ms: expect.any(Number) },
    ]);
  });

  it('posts nothing twice when its outcome could not be stored at once', async () => {
    const delivered = jest.spyOn(gateway.gateway.get(DeliveryStore), 'delivered');
    delivered.mockRejectedValueOnce(new Error('deadlock detected'));
    const taskId = await send('hi', 'echo');
    await ended(taskId);
    delivered.mockRestore();
    expect((await deliveries(taskId)).map(({ status, attempts }) => [status, attempts])).toEqual(
      Array(3).fill(['delivered', 1]),
    );
    expect(sink.received).toHaveLength(3);
  });

  it('waits about 5 s before the second attempt, and later up to twice the schedule if the receiver asks', async () => {
    sink.script([500, { status: 429, headers: { 'retry-after': '3600' } }]);
    const taskId = await send('hi', 'echo');
    // The clock and not now(), which is older than the rows when they were written while the statement began.
    const waits = (least: number) =>
      eventually(
        () =>
          gateway.sql(
            `select extract(epoch from next_at - clock_timestamp())::float as wait
             from webhook_deliveries
             where task_id = $1 and status = 'pending'`,
            [taskId],
          ),
        (rows) => rows.length === 3 && rows.every(({ wait }) => wait > least),
      );
    for (const { wait } of await waits(1)) expect(wait).toBeLessThanOrEqual(6);
    const [one, two] = await got(2);
    expect(two!.at - one!.at).toBeGreaterThan(3_900);
    for (const { wait } of await waits(500)) expect(wait).toBeLessThanOrEqual(600);
  });

  it('treats a broken answer as a failure, and stores the beginning of a long one', async () => {
    sink.script(['break off', { status: 200, body: 'x'.repeat(50_000) }]);
    const taskId = await send('hi', 'echo');
    await got(1);
    await eventually(hurried, () => sink.received.length >= 4);
    const [first] = await ended(taskId);
    const tries = await gateway.sql(
      'select status, error, reply from webhook_attempts where delivery_id = $1 order by number',
      [first.id],
    );
    expect(tries).toEqual([
      { status: null, error: 'remote_transport', reply: null },
      { status: 200, error: null, reply: 'x'.repeat(4_096) },
    ]);
  });

  it('abuse 22: follows no redirect', async () => {
    const elsewhere = await startWebhookSink();
    try {
      sink.script([301, 302, 303, 307, 308].map((status) => ({ status, headers: { location: elsewhere.url } })));
      const taskId = await send('hi', 'echo');
      await got(1);
      await eventually(hurried, () => sink.received.length >= 8);
      const [first] = await ended(taskId);
      expect(first).toMatchObject({ status: 'delivered', attempts: 6 });
      expect(elsewhere.received).toEqual([]);
    } finally {
      await elsewhere.close();
    }
  });

  it('posts nothing more to a removed receiver', async () => {
    sink.script([200, 410]);
    const taskId = await send('hi', 'echo');
    const rows = await ended(taskId);
    expect(rows.map(({ status, last_error }) => [status, last_error])).toEqual([
      ['delivered', null],
      ['dead', 'status_410'],
      ['dead', 'gone'],
    ]);
    expect(await gateway.sql('select state, reason from push_configs where task_id = $1', [taskId])).toEqual([
      { state: 'disabled', reason: 'gone' },
    ]);
    expect(sink.received).toHaveLength(2);
  });

  it('abandons a delivery after ten attempts and continues with the next', async () => {
    sink.script(Array<number>(10).fill(500));
    const taskId = await send('hi', 'echo');
    await got(1);
    await eventually(hurried, () => sink.received.length >= 12);
    const rows = await ended(taskId);
    expect(rows.map(({ status, attempts }) => [status, attempts])).toEqual([
      ['dead', 10],
      ['delivered', 1],
      ['delivered', 1],
    ]);
  });

  it('abandons an event that cannot be encoded like any other', async () => {
    sink.script([500]);
    const pushNotificationConfig = { url: sink.url };
    const params = { message: legacyMessage('hi'), configuration: { blocking: false, pushNotificationConfig } };
    const { id } = await rpc(gateway, 'message/send', params, old);
    await got(1);
    await gateway.sql(
      `update a2a_task_events
       set body = jsonb_set(
         jsonb_set(body::jsonb, '{1}', '{"artifactUpdate": {}}'),
         '{2,statusUpdate,status,message,parts}', '[{"text": "hi"}]'
       )
       where task_id = $1 and first_seq = 2`,
      [id],
    );
    await eventually(hurried, () => sink.received.length >= 3);
    const rows = await ended(id);
    expect(rows.map(({ status, last_error }) => [status, last_error])).toEqual([
      ['delivered', null],
      ['dead', 'internal'],
      ['delivered', null],
    ]);
  });

  it('(N14) RI-40: posts the bare Task for the older configuration name, as of each change of its state', async () => {
    const { task } = await rpc(
      gateway,
      'SendMessage',
      { message: userMessage('x'), configuration: { returnImmediately: true } },
      { agent: 'asks' },
    );
    await eventually(
      () => rpc(gateway, 'GetTask', { id: task.id }, { agent: 'asks' }),
      ({ status }) => status.state === 'TASK_STATE_INPUT_REQUIRED',
    );
    const pushNotificationConfig = { url: sink.url, token: 't' };
    // The task has ended when the second event is first posted.
    sink.script([500]);
    await rpc(gateway, 'tasks/pushNotification/set', { id: task.id, pushNotificationConfig }, { agent: 'asks' });
    await rpc(gateway, 'SendMessage', { message: userMessage('red', { taskId: task.id }) }, { agent: 'asks' });
    await got(1);
    await eventually(hurried, () => sink.received.length >= 3);
    const bodies = sink.received.slice(1).map(({ body }) => body);
    expect(bodies.map(({ kind, id, status }) => [kind, id, status.state])).toEqual(
      ['working', 'completed'].map((state) => ['task', task.id, state]),
    );
    expect(bodies.map(({ artifacts, history }) => [artifacts.length, history.length])).toEqual([
      [0, 3],
      [1, 3],
    ]);
    for (const body of bodies)
      expect(legacyPushNotificationToV1StreamResponse(body).payload).toMatchObject({ $case: 'task' });
  });

  it('posts the bare events of v0.3 to its callers', async () => {
    const params = {
      message: legacyMessage('hi'),
      configuration: { blocking: false, pushNotificationConfig: { url: sink.url } },
    };
    const task = await rpc(gateway, 'message/send', params, old);
    const posts = await got(3);
    expect(posts.map(({ body }) => [body.kind, body.taskId, body.final])).toEqual([
      ['status-update', task.id, false],
      ['artifact-update', task.id, undefined],
      ['status-update', task.id, true],
    ]);
    for (const { body, headers } of posts) {
      expect(headers['content-type']).toBe('application/json');
      expect(legacyPushNotificationToV1StreamResponse(body).payload).toBeDefined();
    }
  });

  it('RY-15: webhook_url alone returns the task at once, for any duration of the work', async () => {
    const params = { message: legacyMessage('hi'), webhook_url: sink.url };
    const task = await rpc(gateway, 'message/send', params, { agent: 'asleep' });
    // A call that waited, even for a moment, would return the state working.
    expect([task.kind, task.status, task.task.status.state]).toEqual(['task', 'running', 'submitted']);
    await rpc(gateway, 'tasks/cancel', { id: task.id }, { agent: 'asleep' });
  });

  it('RY-25 RY-33: webhook_url gets each transition of the run, in order', async () => {
    const asked = await rpc(
      gateway,
      'message/send',
      { message: legacyMessage('paint'), webhook_url: `${sink.url}/run` },
      { agent: 'asks' },
    );
    expect([asked.kind, asked.task.status.state, asked.agent_name]).toEqual(['task', 'submitted', 'asks']);
    await got(2);
    const answer = { message: legacyMessage('red'), task_id: asked.id, webhook_url: `${sink.url}/run` };
    await rpc(gateway, 'message/send', answer, { agent: 'asks' });
    const rows = await ended(asked.id, 5);
    expect(rows.filter(({ status }) => status === 'skipped')).toHaveLength(1);
    const bodies = sink.received.map(({ body }) => body);
    expect(bodies.map(({ status }) => status)).toEqual(['running', 'input-required', 'running', 'completed']);
    expect(bodies[1]).toMatchObject({ run_id: asked.id, question: 'Which colour?', agent_name: 'asks' });
    expect(bodies[3]).toMatchObject({ run_id: asked.id, result: 'red' });
    const stream = await fetch(`${gateway.url}/a2a/tasks/${asked.id}/events`, {
      headers: { authorization: `Bearer ${gateway.token}` },
    });
    const frames = [...(await stream.text()).matchAll(/^data: (\{"run_id.*)$/gm)].map(([, text]) => text);
    expect(sink.received.map(({ text }) => text)).toEqual(frames.slice(1));
    const progress = bodies.map((body) => body.progress);
    expect(progress).toEqual([...progress].sort((a, b) => a - b));
  });

  it('RY-34: a failing webhook does not affect its task', async () => {
    sink.script([500], true);
    const params = { message: legacyMessage('hi'), webhook_url: sink.url };
    const { id } = await rpc(gateway, 'message/send', params);
    await got(1);
    const task = await rpc(gateway, 'GetTask', { id });
    expect(task.status.state).toBe('TASK_STATE_COMPLETED');
    await eventually(
      () => gateway.log.some((line) => line.includes('did not accept a webhook') && line.includes(id)),
      (told) => told,
    );
  });

  it('RY-35 RY-36: three attempts half a second and two apart, then no more posts in the run', async () => {
    sink.script([500, 'break off', 503, 500], true);
    const { id } = await rpc(gateway, 'message/send', { message: legacyMessage('hi'), webhook_url: sink.url });
    const rows = await ended(id);
    expect(rows.map(({ status }) => status)).toEqual(['dead', 'dead', 'dead']);
    const [one, two, three, ...others] = sink.received.map(({ at }) => at);
    expect(others).toEqual([]);
    expect(two! - one!).toBeGreaterThan(380);
    expect(three! - two!).toBeGreaterThan(1_580);
    expect(three! - one!).toBeLessThan(60_000); // a third attempt of the other schedule would be minutes later
  });

  it('RY-35: an attempt ends after ten seconds, and is repeated', async () => {
    sink.script(['hang', 200]);
    const { id } = await rpc(gateway, 'message/send', { message: legacyMessage('hi'), webhook_url: sink.url });
    expect((await ended(id)).map(({ status }) => status)).toEqual(['delivered', 'skipped', 'delivered']);
    const [one, two] = sink.received;
    expect(two!.at - one!.at).toBeGreaterThan(10_300);
    expect(two!.at - one!.at).toBeLessThan(30_000);
  });

  it('RY-35: a refused post is not repeated', async () => {
    sink.script([404], true);
    const { id } = await rpc(gateway, 'message/send', { message: legacyMessage('hi'), webhook_url: sink.url });
    expect((await ended(id)).map(({ status, attempts }) => [status, attempts])).toEqual([
      ['dead', 1],
      ['dead', 0],
      ['dead', 0],
    ]);
    expect(sink.received).toHaveLength(1);
  });

  it('posts to each configuration separately: a hanging receiver delays no other', async () => {
    const other = await startWebhookSink();
    try {
      sink.script(['hang'], true);
      const taskId = await send('hi', 'asleep');
      await rpc(
        gateway,
        'CreateTaskPushNotificationConfig',
        { taskId, url: other.url, id: 'other' },
        { agent: 'asleep' },
      );
      await got(1);
      await rpc(gateway, 'CancelTask', { id: taskId }, { agent: 'asleep' });
      await eventually(
        () => other.received,
        (all) => all.some(({ body }) => body.statusUpdate?.status.state === 'TASK_STATE_CANCELED'),
      );
      // The first post to the hanging receiver has not ended yet.
      expect(sink.received).toHaveLength(1);
      const tries = 'select a.number from webhook_attempts a join webhook_deliveries d on d.id = a.delivery_id';
      expect(await gateway.sql(`${tries} where d.task_id = $1 and d.config_id <> 'other'`, [taskId])).toEqual([]);
    } finally {
      await other.close();
    }
  });
});
