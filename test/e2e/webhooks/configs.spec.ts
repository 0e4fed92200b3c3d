import { TaskPushNotificationConfig } from '@a2a-js/sdk';
import { publish, rpc, rpcCall, rpcError, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';

const canaries = { token: 'canary-token-7d6c5b4a3f2e', credentials: 'canary-cred-1a2b3c4d5e6f' };
const old = { headers: { 'A2A-Version': '0.3' } };

describe('push configurations', () => {
  let gateway: TestGateway;
  let sink: WebhookSink;

  beforeAll(async () => {
    gateway = await startTestGateway();
    await publish(gateway);
    await publish(gateway, { name: 'asks', executor: { kind: 'echo', ask: 'Which colour?' } });
    await publish(gateway, { name: 'mute', pushNotifications: false });
  });
  // Each test has its own sink, so that late posts of an earlier test reach no later one.
  beforeEach(async () => void (sink = await startWebhookSink()));
  afterEach(() => sink.close());
  afterAll(() => gateway.close());

  /** Creates a task that waits for its caller. */
  const waiting = async (token?: string): Promise<string> =>
    (await rpc(gateway, 'SendMessage', { message: userMessage('x') }, { agent: 'asks', token })).task.id;
  const answer = (taskId: string, token?: string) =>
    rpc(gateway, 'SendMessage', { message: userMessage('red', { taskId }) }, { agent: 'asks', token });
  const asks = (method: string, params: object, options: object = {}) =>
    rpc(gateway, method, params, { agent: 'asks', ...options });
  const refused = (method: string, params: object, options: object = {}) =>
    rpcError(gateway, method, params, { agent: 'asks', ...options });
  const create = (taskId: string, more: object = {}) =>
    asks('CreateTaskPushNotificationConfig', { taskId, url: `${sink.url}/hook`, ...more });
  const posted = (count: number) =>
    eventually(
      () => sink.received,
      (all) => all.length >= count,
    );
  const quiet = (taskId: string) =>
    eventually(
      () => gateway.sql(`select from webhook_deliveries where task_id = $1 and status = 'pending'`, [taskId]),
      (rows) => rows.length === 0,
    );

  it('are created, returned as given, and read without their credentials', async () => {
    const taskId = await waiting();
    const authentication = { scheme: 'Bearer', credentials: 'c-1' };
    const given = { id: 'mine', url: `${sink.url}/hook`, token: 't-1', authentication };
    expect(await create(taskId, given)).toEqual({ ...given, taskId });
    const read = { ...given, taskId, authentication: { scheme: 'Bearer' } };
    expect(await asks('GetTaskPushNotificationConfig', { taskId, id: 'mine' })).toEqual(read);
    expect(await asks('ListTaskPushNotificationConfigs', { taskId })).toEqual({ configs: [read], nextPageToken: '' });
    expect(TaskPushNotificationConfig.fromJSON(read)).toMatchObject({ id: 'mine', taskId, token: 't-1' });
    const unnamed = await create(taskId);
    expect(unnamed).toEqual({ taskId, url: `${sink.url}/hook`, id: expect.stringMatching(/^[0-9a-f-]{36}$/) });
  });

  it('are replaced by their id', async () => {
    const taskId = await waiting();
    await create(taskId, { id: 'a', url: `${sink.url}/first`, token: 'one' });
    await create(taskId, { id: 'a', url: `${sink.url}/second` });
    expect(await asks('ListTaskPushNotificationConfigs', { taskId })).toEqual({
      configs: [{ taskId, id: 'a', url: `${sink.url}/second` }],
      nextPageToken: '',
    });
    await answer(taskId);
    await quiet(taskId);
    expect(new Set(sink.received.map(({ path }) => path))).toEqual(new Set(['/second']));
    expect(sink.received).toHaveLength(3);
    expect(sink.received[0]!.headers['a2a-notification-token']).toBeUndefined();
  });

  it('that fail are retried after their replacement, at the new address and in its format', async () => {
    const taskId = await waiting();
    await create(taskId, { id: 'a', url: `${sink.url}/first` });
    sink.script([500]);
    await answer(taskId);
    await posted(1);
    await eventually(
      () => gateway.sql(`select state from push_configs where task_id = $1`, [taskId]),
      ([{ state }]) => state === 'failing',
    );
    const pushNotificationConfig = { id: 'a', url: `${sink.url}/second` };
    await asks('tasks/pushNotificationConfig/set', { taskId, pushNotificationConfig }, old);
    await posted(4);
    expect(sink.received.map(({ path, body }) => [path, body.kind])).toEqual([
      ['/first', undefined],
      ['/second', 'status-update'],
      ['/second', 'artifact-update'],
      ['/second', 'status-update'],
    ]);
  });

  it.each<[string, number]>([
    ['is gone', 410],
    ['fails', 500],
  ])(
    'an address that %s after it was replaced does not affect the new one, which gets the posts that are left',
    async (_how, reply) => {
      const fresh = await startWebhookSink();
      try {
        const taskId = await waiting();
        await create(taskId, { id: 'a' });
        sink.script([reply]);
        const release = sink.hold();
        await answer(taskId);
        await posted(1);
        await create(taskId, { id: 'a', url: `${fresh.url}/new` });
        release();
        await quiet(taskId);
        const ended = await gateway.sql('select status from webhook_deliveries where task_id = $1', [taskId]);
        expect(ended).toEqual(Array(3).fill({ status: 'delivered' }));
        const [config] = await gateway.sql('select state, reason from push_configs where task_id = $1', [taskId]);
        expect(config).toEqual({ state: 'active', reason: null });
        expect([sink.received.length, fresh.received.length]).toEqual([1, 3]);
        const audited = `select from audit_events where type like 'webhook.%' and event->>'taskId' = $1`;
        expect(await gateway.sql(audited, [taskId])).toEqual([]);
      } finally {
        await fresh.close();
      }
    },
  );

  it('deferred deliveries go to a new address at once, in its format', async () => {
    const taskId = await waiting();
    await create(taskId, { id: 'a' });
    sink.script([500]);
    await answer(taskId);
    await eventually(
      () => gateway.sql(`select state from push_configs where task_id = $1`, [taskId]),
      ([{ state }]) => state === 'failing',
    );
    await gateway.sql(
      `update webhook_deliveries
       set attempts = 0, next_at = now() + interval '1 hour', body = '{"old":1}'
       where task_id = $1`,
      [taskId],
    );
    await create(taskId, { id: 'a', url: `${sink.url}/new` });
    await posted(4);
    expect(sink.received.slice(1).map(({ path, body }) => [path, body.old])).toEqual(
      Array(3).fill(['/new', undefined]),
    );
  });

  it('RI-23 RI-24 RI-25: the older names set, get and delete the one configuration of a task', async () => {
    const id = await waiting();
    const pushNotificationConfig = { url: `${sink.url}/old`, token: 't-1' };
    const named = { taskId: id, pushNotificationConfig: { ...pushNotificationConfig, id: expect.any(String) } };
    expect(await asks('tasks/pushNotification/set', { id, pushNotificationConfig })).toEqual(named);
    const [row] = await gateway.sql('select url, format from push_configs where task_id = $1', [id]);
    expect(row).toEqual({ url: `${sink.url}/old`, format: 'task' });
    expect(await asks('tasks/pushNotification/get', { id })).toEqual(named);
    await asks('tasks/pushNotification/set', { id, pushNotificationConfig: { url: `${sink.url}/new` } });
    expect(await gateway.sql('select url from push_configs where task_id = $1', [id])).toEqual([
      { url: `${sink.url}/new` },
    ]);
    await asks('tasks/pushNotification/delete', { id });
    await answer(id);
    await quiet(id);
    expect(await gateway.sql('select from webhook_deliveries where task_id = $1', [id])).toEqual([]);
    expect(sink.received).toEqual([]);
  });

  it('RI-24 RI-25: without an id the older names read and delete the one that they set, not an older one', async () => {
    const id = await waiting();
    await create(id, { id: 'a', url: `${sink.url}/a` });
    const pushNotificationConfig = { url: `${sink.url}/mine` };
    await asks('tasks/pushNotification/set', { id, pushNotificationConfig });
    expect(await asks('tasks/pushNotification/get', { id })).toMatchObject({ pushNotificationConfig });
    await asks('tasks/pushNotification/delete', { id });
    const left = () => gateway.sql('select id from push_configs where task_id = $1', [id]);
    expect(await left()).toEqual([{ id: 'a' }]);
    expect(await asks('tasks/pushNotification/get', { id })).toMatchObject({ pushNotificationConfig: { id: 'a' } });
    await asks('tasks/pushNotification/delete', { id });
    expect(await left()).toEqual([]);
  });

  it('RI-25: a delete stops the remaining posts; a second delete is not an error', async () => {
    const taskId = await waiting();
    await create(taskId, { id: 'a' });
    sink.script([500]);
    await answer(taskId);
    await posted(1);
    await eventually(
      () => gateway.sql(`select state from push_configs where task_id = $1`, [taskId]),
      ([{ state }]) => state === 'failing',
    );
    expect(await asks('DeleteTaskPushNotificationConfig', { taskId, id: 'a' })).toEqual({});
    expect(await asks('DeleteTaskPushNotificationConfig', { taskId, id: 'a' })).toEqual({});
    const rows = await gateway.sql('select status, last_error from webhook_deliveries where task_id = $1', [taskId]);
    expect(rows).toEqual(Array(3).fill({ status: 'skipped', last_error: 'deleted' }));
    expect(sink.received).toHaveLength(1);
    const error = await refused('GetTaskPushNotificationConfig', { taskId, id: 'a' });
    expect(error.code).toBe(-32001);
  });

  it('are listed by pages, oldest first; a page token is valid for its own task only', async () => {
    const [taskId, other] = [await waiting(), await waiting()];
    for (const id of ['c', 'a', 'b']) await create(taskId, { id });
    const page = (more: object) => asks('ListTaskPushNotificationConfigs', { taskId, pageSize: 2, ...more });
    const first = await page({});
    const second = await page({ pageToken: first.nextPageToken });
    expect([first, second].map(({ configs }) => configs.map(({ id }: any) => id))).toEqual([['c', 'a'], ['b']]);
    expect(second.nextPageToken).toBe('');
    const misused = await refused('ListTaskPushNotificationConfigs', { taskId: other, pageToken: first.nextPageToken });
    expect(misused.code).toBe(-32602);
  });

  it('abuse 28: are at most ten per task, also with concurrent requests', async () => {
    const taskId = await waiting();
    const made = await Promise.all(
      Array.from({ length: 40 }, () =>
        rpcCall(
          gateway,
          'CreateTaskPushNotificationConfig',
          { taskId, url: sink.url },
          { agent: 'asks', headers: { 'A2A-Version': '1.0' } },
        ),
      ),
    );
    expect(made.filter(({ body }) => body.result)).toHaveLength(10);
    expect(made.find(({ body }) => body.error)!.body.error.code).toBe(-32602);
    const [{ count }] = await gateway.sql('select count(*)::int from push_configs where task_id = $1', [taskId]);
    expect(count).toBe(10);
    const { id } = (await asks('ListTaskPushNotificationConfigs', { taskId })).configs[0];
    await create(taskId, { id, url: `${sink.url}/other` });
    const configuration = { taskPushNotificationConfig: { url: sink.url } };
    await asks('SendMessage', { message: userMessage('red', { taskId }), configuration });
    const rows = await gateway.sql('select from push_configs where task_id = $1', [taskId]);
    expect(rows).toHaveLength(10);
  });

  it("of another caller's task look as if the task did not exist", async () => {
    const [mallory, gina] = await Promise.all([
      gateway.tokenOf('default', 'mallory'),
      gateway.tokenOf('globex', 'gina', 'admin'),
    ]);
    const taskId = await waiting(await gateway.tokenOf('default', 'alice'));
    await create(taskId, { id: 'a' });
    const absent = '0190aaaa-0000-7000-8000-000000000000';
    const without = (error: object) => JSON.stringify(error).replace(/"(taskId|requestId)":"[^"]*"/g, '');
    for (const [token, agent] of [
      [mallory, 'asks'],
      [gina, 'asks@default'],
    ] as const) {
      for (const [method, more] of [
        ['CreateTaskPushNotificationConfig', { url: sink.url }],
        ['GetTaskPushNotificationConfig', { id: 'a' }],
        ['ListTaskPushNotificationConfigs', {}],
        ['DeleteTaskPushNotificationConfig', { id: 'a' }],
      ] as const) {
        const foreign = await refused(method, { taskId, ...more }, { token, agent });
        const none = await refused(method, { taskId: absent, ...more }, { token, agent });
        expect(foreign.code).toBe(-32001);
        expect(without(foreign)).toBe(without(none));
      }
    }
    expect(await gateway.sql('select id from push_configs where task_id = $1', [taskId])).toEqual([{ id: 'a' }]);
  });

  it('are refused for an agent with a card that does not offer them', async () => {
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x') }, { agent: 'mute' });
    const error = await rpcError(
      gateway,
      'CreateTaskPushNotificationConfig',
      { taskId: task.id, url: sink.url },
      { agent: 'mute' },
    );
    expect(error.code).toBe(-32003);
  });

  it('that come with a message and are denied name the policy, and the denial is audited', async () => {
    const text = `forbid(principal == User::"mute", action == Action::"push_configure", resource);`;
    expect((await gateway.call('POST', '/api/policies', { name: 'mute', text })).status).toBe(201);
    const params = { message: userMessage('x'), configuration: { taskPushNotificationConfig: { url: sink.url } } };
    const { data } = await refused('SendMessage', params, { token: await gateway.tokenOf('default', 'mute') });
    expect(JSON.stringify(data)).toContain('mute');
    await asks('SendMessage', params); // a permitted configuration is not a separate act
    const { items } = (await gateway.call('GET', '/api/audit/decisions?decision=deny')).body;
    expect(items).toMatchObject([{ action: 'push_configure', policyIds: ['mute'], outcome: 'denied' }]);
    const events = await gateway.sql(`select event from audit_events where event->'resource'->>'id' = 'new'`);
    expect(events).toHaveLength(1);
  });

  it('abuse 27: are refused when a header cannot hold them', async () => {
    const taskId = await waiting();
    const url = sink.url;
    for (const bad of [
      { url, token: 'a\r\nX-Evil: 1' },
      { url, token: 'caf\u00e9' },
      { url, authentication: { scheme: 'Bearer x', credentials: 'y' } },
      { url, authentication: { scheme: 'Bearer', credentials: 'a\nb' } },
    ]) {
      expect((await refused('CreateTaskPushNotificationConfig', { taskId, ...bad })).code).toBe(-32602);
      const message = userMessage('x');
      const inline = { message, configuration: { taskPushNotificationConfig: bad } };
      expect((await refused('SendMessage', inline)).code).toBe(-32602);
    }
  });

  it('abuse 45: keep their secrets out of every log, table and reply', async () => {
    const authentication = { scheme: 'Bearer', credentials: canaries.credentials };
    sink.script([{ status: 500, body: `you said ${canaries.token} and ${canaries.credentials}` }, 200]);
    const taskPushNotificationConfig = { url: sink.url, token: canaries.token, authentication };
    const configuration = { taskPushNotificationConfig, returnImmediately: true };
    const { task } = await asks('SendMessage', { message: userMessage('x'), configuration });
    await posted(1);
    expect(sink.received[0]!.headers).toMatchObject({ authorization: `Bearer ${canaries.credentials}` });
    await create(task.id, { id: 'b', token: canaries.token, authentication });
    const [{ reply }] = await eventually(
      () => gateway.sql('select reply from webhook_attempts where reply is not null limit 1'),
      ({ length }) => length === 1,
    );
    expect(reply).toBe('you said [redacted] and [redacted]');
    const tables = ['push_configs', 'webhook_deliveries', 'webhook_attempts', 'a2a_tasks', 'a2a_task_events'];
    const dump = await Promise.all(
      [...tables, 'audit_events'].map((table) => gateway.sql(`select t::text as row from ${table} t`)),
    );
    const stored = [JSON.stringify(dump), gateway.log.join('\n')];
    for (const secret of Object.values(canaries)) for (const text of stored) expect(text).not.toContain(secret);
    const [sealed] = await gateway.sql(
      `select token, authentication from push_configs where task_id = $1 and id = 'b'`,
      [task.id],
    );
    expect(sealed).toEqual({ token: expect.stringMatching(/^v1\./), authentication: expect.stringMatching(/^v1\./) });
  });

  it('with sealed secrets from another row are not posted', async () => {
    const taskId = await waiting();
    await create(taskId, { id: 'a', token: 'token-of-a' });
    await create(taskId, { id: 'b', url: `${sink.url}/b` });
    await gateway.sql(
      `update push_configs b set token = a.token from push_configs a
       where a.task_id = $1 and b.task_id = $1 and a.id = 'a' and b.id = 'b'`,
      [taskId],
    );
    await answer(taskId);
    await posted(3);
    const [{ last_error }] = await eventually(
      () =>
        gateway.sql(`select last_error from webhook_deliveries where task_id = $1 and config_id = 'b' order by seq`, [
          taskId,
        ]),
      ([first]) => first?.last_error !== null,
    );
    expect(last_error).toBe('internal');
    expect(sink.received.every(({ path }) => path === '/hook')).toBe(true);
    await asks('DeleteTaskPushNotificationConfig', { taskId, id: 'b' });
  });

  it('are dropped with their deliveries when they are older than the retention of tasks', async () => {
    const taskId = await waiting();
    await create(taskId, { id: 'a' });
    await answer(taskId);
    await posted(3);
    await quiet(taskId);
    const old = `now() - interval '31 days'`;
    await gateway.sql(`update webhook_deliveries set created_at = ${old} where task_id = $1`, [taskId]);
    await gateway.sql(`update push_configs set created_at = ${old} where task_id = $1`, [taskId]);
    const { WebhookRetentionSweeper } = await import('../../../src/webhooks/retention/webhook-retention.sweeper.js');
    const sweeper = gateway.gateway.get(WebhookRetentionSweeper);
    await sweeper.sweep();
    const left = (table: string) => gateway.sql(`select from ${table} where task_id = $1`, [taskId]);
    expect([await left('webhook_deliveries'), await left('push_configs')]).toEqual([[], [{}]]);
    const tries = await gateway.sql(
      'select from webhook_attempts a where not exists (select from webhook_deliveries d where d.id = a.delivery_id)',
    );
    expect(tries).toEqual([]);
    await gateway.sql(`update a2a_tasks set status_timestamp = ${old}, updated_at = ${old} where id = $1`, [taskId]);
    await sweeper.sweep();
    expect(await left('push_configs')).toEqual([]);
  });
});
