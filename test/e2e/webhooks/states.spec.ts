import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { hurry, startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';

describe('the states of push configurations', () => {
  let gateway: TestGateway;
  let sink: WebhookSink;
  let stranger: string;

  beforeAll(async () => {
    gateway = await startTestGateway();
    await publish(gateway);
    await publish(gateway, { name: 'asks', executor: { kind: 'echo', ask: 'Which colour?' } });
    stranger = await gateway.tokenOf('globex', 'gina', 'admin');
  });
  beforeEach(async () => void (sink = await startWebhookSink()));
  afterEach(() => sink.close());
  afterAll(() => gateway.close());

  /** Creates a task that waits for its caller. */
  const waiting = async (): Promise<string> =>
    (await rpc(gateway, 'SendMessage', { message: userMessage('x') }, { agent: 'asks' })).task.id;
  const answer = (taskId: string) =>
    rpc(gateway, 'SendMessage', { message: userMessage('red', { taskId }) }, { agent: 'asks' });
  const create = (taskId: string, id: string, url = `${sink.url}/hook?key=canary`) =>
    rpc(gateway, 'CreateTaskPushNotificationConfig', { taskId, id, url }, { agent: 'asks' });
  const path = (taskId: string, id: string) => `/api/webhooks/configs/${taskId}/${encodeURIComponent(id)}`;
  const turn = (taskId: string, id: string, how: 'activate' | 'deactivate', token?: string) =>
    gateway.call('POST', `${path(taskId, id)}/${how}`, undefined, token);
  const config = async (taskId: string, id: string) => (await gateway.call('GET', path(taskId, id))).body;
  const becomes = (taskId: string, id: string, state: string) =>
    eventually(
      () => config(taskId, id),
      (now) => now.state === state,
    );
  const rows = (taskId: string) =>
    gateway.sql(
      `select config_id, seq, status, last_error, attempts from webhook_deliveries where task_id = $1 order by seq`,
      [taskId],
    );
  const over = (taskId: string, count: number) =>
    eventually(
      () => rows(taskId),
      (all) => all.length === count && all.every(({ status }) => status !== 'pending'),
    );
  /** Returns the webhook events in the audit of a task, in order. */
  const auditOf = async (taskId: string): Promise<any[]> => {
    const events = await gateway.sql(
      `select type, event from audit_events where type like 'webhook.%' and event->>'taskId' = $1 order by at, id`,
      [taskId],
    );
    return events.map(({ type, event }) => [type, event.reason]);
  };
  it('RI-45: can be switched off and on repeatedly; waiting deliveries become dead and can be replayed', async () => {
    const taskId = await waiting();
    const id = 'mine / ours?';
    await create(taskId, id);
    expect(await config(taskId, id)).toEqual({
      taskId,
      id,
      url: `${sink.url}/hook`,
      format: 'v1',
      state: 'active',
      reason: null,
      failingSince: null,
      createdAt: expect.any(String),
    });
    sink.script([503]);
    await answer(taskId);
    await becomes(taskId, id, 'failing');
    for (let twice = 0; twice < 2; twice++) {
      const { status, body } = await turn(taskId, id, 'deactivate');
      expect([status, body.state, body.reason]).toEqual([200, 'disabled', 'deactivated']);
    }
    const given = await over(taskId, 3);
    expect(given.map(({ status, last_error }) => [status, last_error])).toEqual(Array(3).fill(['dead', 'deactivated']));
    const replay = () => gateway.call('POST', '/api/webhooks/deliveries/replay', { taskId, state: 'dead' });
    expect((await replay()).body.replayed).toBe(0);
    const { body } = await gateway.call('GET', `/api/webhooks/deliveries?taskId=${taskId}`);
    expect(body.items[0]).toMatchObject({ configState: 'disabled', configReason: 'deactivated', state: 'dead' });

    for (let twice = 0; twice < 2; twice++) {
      const { status, body } = await turn(taskId, id, 'activate');
      expect([status, body.state, body.reason, body.failingSince]).toEqual([200, 'active', null, null]);
    }
    expect((await replay()).body.replayed).toBe(3);
    await eventually(
      () => rows(taskId),
      (all) => all.every(({ status }) => status === 'delivered'),
    );
    expect(sink.received).toHaveLength(4);
    const acts = await gateway.sql(
      `select event->>'verb' as verb
       from audit_events
       where type = 'admin_write' and event->>'verb' like 'webhook.%activate'`,
    );
    expect(acts.map(({ verb }) => verb).sort()).toEqual([
      'webhook.activate',
      'webhook.activate',
      'webhook.deactivate',
      'webhook.deactivate',
    ]);
  });

  it('RI-45: an inactive one gets no events, an active one gets all later events', async () => {
    const taskId = await waiting();
    await create(taskId, 'a');
    await turn(taskId, 'a', 'deactivate');
    await answer(taskId);
    expect(await rows(taskId)).toEqual([]);
    const other = await waiting();
    await create(other, 'a');
    await turn(other, 'a', 'deactivate');
    await turn(other, 'a', 'activate');
    await answer(other);
    await over(other, 3);
    expect(sink.received).toHaveLength(3);
  });

  it('RI-45: a post in progress at the switch ends normally', async () => {
    const taskId = await waiting();
    await create(taskId, 'a');
    const release = sink.hold();
    await answer(taskId);
    await eventually(
      () => sink.received,
      (all) => all.length === 1,
    );
    await turn(taskId, 'a', 'deactivate');
    release();
    const ended = await over(taskId, 3);
    expect(ended.map(({ status, attempts }) => [status, attempts])).toEqual([
      ['delivered', 1],
      ['dead', 0],
      ['dead', 0],
    ]);
    expect(sink.received).toHaveLength(1);
  });

  it('RI-45: a post in progress during a switch off and on is delivered or dead, and not tried again', async () => {
    for (const [reply, expected] of [
      [500, ['dead', 'deactivated']],
      [200, ['delivered', null]],
    ] as const) {
      const taskId = await waiting();
      await create(taskId, 'a');
      sink.received.length = 0;
      sink.script([reply]);
      const release = sink.hold();
      await answer(taskId);
      await eventually(
        () => sink.received,
        (all) => all.length === 1,
      );
      for (const how of ['deactivate', 'activate'] as const) await turn(taskId, 'a', how);
      release();
      await eventually(
        () =>
          gateway.sql(
            `select from webhook_attempts a join webhook_deliveries d on d.id = a.delivery_id where d.task_id = $1`,
            [taskId],
          ),
        ({ length }) => length === 1,
      );
      const ended = await over(taskId, 3);
      expect([ended[0]!.status, ended[0]!.last_error]).toEqual(expected);
      expect((await config(taskId, 'a')).state).toBe('active');
      expect(sink.received).toHaveLength(1);
    }
  });

  it('RI-45: the same address twice is a conflict here, in either order, and is allowed at the A2A doors', async () => {
    const taskId = await waiting();
    const made = await Promise.all(
      Array.from({ length: 8 }, () => gateway.call('POST', '/api/webhooks/configs', { taskId, url: `${sink.url}/a` })),
    );
    expect(made.map(({ status }) => status).sort()).toEqual([201, ...Array<number>(7).fill(409)]);
    const first = made.find(({ status }) => status === 201)!.body;
    expect(first).toMatchObject({
      taskId,
      state: 'active',
      url: `${sink.url}/a`,
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect((await gateway.call('POST', '/api/webhooks/configs', { taskId, url: `${sink.url}/b` })).status).toBe(201);
    await create(taskId, 'x', `${sink.url}/a`);
    await create(taskId, 'x', `${sink.url}/a`);
    const { body } = await gateway.call('GET', `/api/webhooks/configs?taskId=${taskId}`);
    expect(body.items).toHaveLength(3);
    await answer(taskId);
    await over(taskId, 9);
    for (const refused of [{ url: 'http://169.254.169.254/' }, { url: sink.url, token: 'a\r\nb' }])
      expect(
        (await gateway.call('POST', '/api/webhooks/configs', { taskId, ...refused })).status,
      ).toBeGreaterThanOrEqual(400);
  });

  it('RI-45: are listed by pages and by state, and none of another org', async () => {
    const taskId = await waiting();
    for (const id of ['a', 'b', 'c']) await create(taskId, id);
    await turn(taskId, 'b', 'deactivate');
    const list = async (query: string, token?: string) =>
      (await gateway.call('GET', `/api/webhooks/configs?${query}`, undefined, token)).body;
    const first = await list(`taskId=${taskId}&limit=2`);
    const second = await list(`taskId=${taskId}&limit=2&cursor=${first.nextCursor}`);
    expect([...first.items, ...second.items].map(({ id }: any) => id)).toEqual(['c', 'b', 'a']);
    expect(second.nextCursor).toBeNull();
    expect((await list(`taskId=${taskId}&state=disabled`)).items.map(({ id }: any) => id)).toEqual(['b']);
    expect(JSON.stringify(first)).not.toContain('canary');

    expect((await list('', stranger)).items).toEqual([]);
    for (const [key, token] of [
      ['a', stranger],
      ['none', undefined],
    ] as const) {
      expect((await gateway.call('GET', path(taskId, key), undefined, token)).status).toBe(404);
      for (const how of ['activate', 'deactivate'] as const)
        expect((await turn(taskId, key, how, token)).status).toBe(404);
    }
    const foreign = await gateway.call('POST', '/api/webhooks/configs', { taskId, url: sink.url }, stranger);
    expect(foreign.status).toBe(404);
    expect((await gateway.call('GET', path('x', 'a'))).status).toBe(404);
    expect(await config(taskId, 'a')).toMatchObject({ state: 'active' });
  });

  it('notify their org when they fail, exhaust a delivery and recover, once each', async () => {
    const taskId = await waiting();
    await create(taskId, 'a');
    sink.script(Array<number>(10).fill(500));
    const now = async (): Promise<Date> => (await gateway.sql('select now() as now'))[0].now;
    const before = await now();
    await answer(taskId);
    const { failingSince } = await becomes(taskId, 'a', 'failing');
    const since = new Date(failingSince);
    expect([before <= since, since <= (await now())]).toEqual([true, true]);
    await eventually(
      () => hurry(gateway, taskId),
      () => sink.received.length >= 12,
    );
    await over(taskId, 3);
    expect(await auditOf(taskId)).toEqual([
      ['webhook.failing', undefined],
      ['webhook.exhausted', undefined],
      ['webhook.recovered', undefined],
    ]);
    expect(await config(taskId, 'a')).toMatchObject({ state: 'active', failingSince: null });
    const events = await gateway.call('GET', '/api/audit/events?type=webhook.exhausted');
    expect(events.body.items[0]).toMatchObject({ taskId, configId: 'a', host: new URL(sink.url).host });
    expect(JSON.stringify(events.body)).not.toContain('canary');
  });

  it('recover with all waiting deliveries when the first one is delivered by hand, despite its wait', async () => {
    const taskId = await waiting();
    await create(taskId, 'a');
    sink.script([500]);
    await answer(taskId);
    await becomes(taskId, 'a', 'failing');
    await gateway.sql(
      `update webhook_deliveries set next_at = now() + interval '1 day' where task_id = $1 and status = 'pending'`,
      [taskId],
    );
    const { body } = await gateway.call('GET', `/api/webhooks/deliveries?taskId=${taskId}&state=failed`);
    const again = await gateway.call('POST', `/api/webhooks/deliveries/${body.items[0].id}/redeliver`);
    expect(again.status).toBe(200);
    const delivered = await over(taskId, 3);
    expect(delivered.map(({ status }) => status)).toEqual(Array(3).fill('delivered'));
    expect(sink.received).toHaveLength(4);
  });

  it('are disabled after five days of failures, not before, and get no events until activated', async () => {
    const taskId = await waiting();
    await create(taskId, 'a');
    await create(taskId, 'b', `${sink.url}/b`);
    sink.script([500], true);
    await answer(taskId);
    await becomes(taskId, 'a', 'failing');
    await becomes(taskId, 'b', 'failing');
    const since = (id: string, hours: number) =>
      gateway.sql(
        `update push_configs set failing_since = now() - make_interval(hours => $3) where task_id = $1 and id = $2`,
        [taskId, id, hours],
      );
    await since('a', 121);
    await since('b', 119);
    await hurry(gateway, taskId);
    const disabled = await becomes(taskId, 'a', 'disabled');
    expect(disabled.reason).toBe('failing');
    await eventually(
      () => rows(taskId),
      (all) => all.some(({ config_id, attempts }) => config_id === 'b' && attempts === 2),
    );
    expect(await config(taskId, 'b')).toMatchObject({ state: 'failing' });
    const all = await rows(taskId);
    expect(
      all.filter(({ config_id }) => config_id === 'a').map(({ status, last_error }) => [status, last_error]),
    ).toEqual([
      ['dead', 'status_500'],
      ['dead', 'failing'],
      ['dead', 'failing'],
    ]);
    const events = await auditOf(taskId);
    expect(events.filter(([type]) => type === 'webhook.disabled')).toEqual([['webhook.disabled', 'failing']]);

    sink.script([200], true);
    await turn(taskId, 'a', 'activate');
    const replay = { taskId, configId: 'a', state: 'dead' };
    expect((await gateway.call('POST', '/api/webhooks/deliveries/replay', replay)).body.replayed).toBe(3);
    await hurry(gateway, taskId);
    await eventually(
      () => rows(taskId),
      (now) => now.every(({ status }) => status === 'delivered'),
    );
  });

  /** Sends a run, or the next turn of one, as callers of Reyn do. */
  const run = (text: string, path: string, task_id?: string) => {
    const message = { kind: 'message', messageId: `m-${Math.random()}`, role: 'user', parts: [{ kind: 'text', text }] };
    const params = { message, webhook_url: `${sink.url}${path}`, ...(task_id && { task_id }) };
    return rpc(gateway, 'message/send', params, { agent: 'asks' });
  };
  const runBecomes = (id: string, is: (body: any) => boolean) =>
    eventually(
      () => gateway.call('GET', `/a2a/tasks/${id}`),
      ({ body }) => is(body),
    );

  it('RY-36: a dead channel gets no more posts in its run, also when named again, and the run shows that', async () => {
    sink.script([404], true);
    const { id } = await run('paint', '/run');
    await runBecomes(id, ({ status, webhook }) => status === 'input-required' && webhook?.state === 'disabled');
    await run('red', '/run', id);
    const ended = await runBecomes(id, ({ status }) => status === 'completed');
    expect(ended.body.webhook).toEqual({ state: 'disabled', reason: 'dead' });
    expect(sink.received).toHaveLength(1);
    const { body } = await gateway.call('GET', `/api/webhooks/deliveries?taskId=${id}`);
    expect(body.items.every(({ state, configReason }: any) => state === 'dead' && configReason === 'dead')).toBe(true);
  });

  it('RY-36: another address in the same run is a separate channel', async () => {
    sink.script([404]);
    const { id } = await run('paint', '/run');
    await runBecomes(id, ({ webhook }) => webhook?.state === 'disabled');
    await run('red', '/other', id);
    await eventually(
      () => sink.received,
      (all) => all.some(({ path, body }) => path === '/other' && body.status === 'completed'),
    );
    expect((await gateway.call('GET', `/a2a/tasks/${id}`)).body.webhook).toEqual({ state: 'active' });
  });
});
