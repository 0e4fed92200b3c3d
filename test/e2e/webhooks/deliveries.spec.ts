import { createHash, createHmac } from 'node:crypto';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { Webhook } from 'standardwebhooks';
import { verifyWebhook } from '../../../src/webhooks/verify.js';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { hurry, startWebhookSink, type Received, type WebhookSink } from '../../support/stubs/webhook-sink.js';

describe('the deliveries of an org', () => {
  let gateway: TestGateway;
  let sink: WebhookSink;
  let stranger: string;

  beforeAll(async () => {
    gateway = await startTestGateway();
    await publish(gateway);
    stranger = await gateway.tokenOf('globex', 'gina', 'admin');
  });
  beforeEach(async () => void (sink = await startWebhookSink()));
  afterEach(() => sink.close());
  afterAll(() => gateway.close());

  const send = async (push: object = {}): Promise<string> => {
    const taskPushNotificationConfig = { url: `${sink.url}/hook?key=canary`, ...push };
    const configuration = { returnImmediately: true, taskPushNotificationConfig };
    return (await rpc(gateway, 'SendMessage', { message: userMessage('hi'), configuration })).task.id;
  };
  const got = (count: number): Promise<Received[]> =>
    eventually(
      () => sink.received,
      (all) => all.length >= count,
    );
  const list = async (query: string, token?: string) =>
    (await gateway.call('GET', `/api/webhooks/deliveries?${query}`, undefined, token)).body;
  const settled = (taskId: string, state: string) =>
    eventually(
      () => list(`taskId=${taskId}`),
      ({ items }) => items.length === 3 && items.every((item: any) => item.state === state),
    );
  const makeSecret = async (graceSeconds?: number) =>
    (await gateway.call('POST', '/api/webhooks/secrets', { graceSeconds })).body;
  const verifies = (secret: string, { headers, text }: Received): boolean => {
    try {
      new Webhook(secret).verify(text, headers as Record<string, string>);
      return true;
    } catch {
      return false;
    }
  };
  it('RI-43 have X-Rine-Signature for a configuration that asks for it, and no secret in clear text', async () => {
    const mac = (key: string | Buffer, text: string) =>
      `sha256=${createHmac('sha256', key).update(text).digest('hex')}`;
    await send({ authentication: { scheme: 'X-Rine-Signature', credentials: 'shared-secret-of-the-receiver' } });
    for (const { headers, text } of await got(3)) {
      expect(headers['x-rine-signature']).toBe(mac('shared-secret-of-the-receiver', text));
      expect(headers.authorization).toBeUndefined();
      expect(JSON.stringify([headers, text])).not.toContain('shared-secret');
    }
    sink.received.length = 0;
    const { id, secret } = await makeSecret();
    await send({ authentication: { scheme: 'x-rine-signature' } });
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    for (const { headers, text } of await got(3)) expect(headers['x-rine-signature']).toBe(mac(key, text));
    await gateway.call('DELETE', `/api/webhooks/secrets/${id}`);
  });

  it('are signed with the secret of the org, in a rotation also with the previous one, and with no other', async () => {
    await send();
    expect((await got(3))[0]!.headers['webhook-signature']).toBeUndefined();

    const first = await makeSecret();
    expect(first).toMatchObject({
      secret: expect.stringMatching(/^whsec_/),
      hint: first.secret.slice(-4),
      endsAt: null,
    });
    await send();
    const post = (await got(6))[3]!;
    expect(verifies(first.secret, post)).toBe(true);
    expect(verifyWebhook(first.secret, post.headers, post.text)).toEqual(post.body);

    const second = await makeSecret(600);
    await send();
    const both = (await got(9))[6]!;
    expect([first, second].map(({ secret }) => verifies(secret, both))).toEqual([true, true]);
    const other = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;
    expect(() => verifyWebhook(other, both.headers, both.text)).toThrow('no signature is right');

    const { body: known } = await gateway.call('GET', '/api/webhooks/secrets');
    expect(known.items.map(({ id }: any) => id)).toEqual([second.id, first.id]);
    expect(JSON.stringify(known)).not.toContain('whsec_');
    expect((await gateway.call('DELETE', `/api/webhooks/secrets/${first.id}`)).status).toBe(204);
    await send();
    const last = (await got(12))[9]!;
    expect([first, second].map(({ secret }) => verifies(secret, last))).toEqual([false, true]);

    const third = await makeSecret(0);
    await send();
    const now = (await got(15))[12]!;
    expect([second, third].map(({ secret }) => verifies(secret, now))).toEqual([false, true]);
    for (let more = 0; more < 6; more++) await makeSecret();
    expect((await gateway.call('GET', '/api/webhooks/secrets')).body.items).toHaveLength(5);
    const stored = await gateway.sql('select sealed from webhook_secrets');
    expect(stored).toHaveLength(5);
    expect(JSON.stringify(stored)).not.toContain(third.secret.slice(6, 20));
  });

  it('are signed with each of the secrets that were created together; the last does not expire', async () => {
    for (let round = 0; round < 5; round++) {
      const made = await Promise.all([makeSecret(600), makeSecret(600), makeSecret(600)]);
      const { items } = (await gateway.call('GET', '/api/webhooks/secrets')).body;
      expect(items.map(({ id }: any) => id)).toEqual(expect.arrayContaining(made.map(({ id }) => id)));
      expect(items.filter(({ endsAt }: any) => endsAt === null)).toHaveLength(1);
    }
  });

  it('have a token of the gateway when the scheme is Bearer and no credentials are given', async () => {
    const taskId = await send({ authentication: { scheme: 'Bearer' } });
    const [post] = await got(1);
    const { body: jwks } = await gateway.call('GET', '/.well-known/jwks.json');
    const token = (post!.headers.authorization as string).replace('Bearer ', '');
    const { payload } = await jwtVerify(token, createLocalJWKSet(jwks), { audience: sink.url, issuer: gateway.url });
    expect(payload).toMatchObject({
      jti: post!.headers['webhook-id'],
      taskId,
      request_body_sha256: createHash('sha256').update(post!.text).digest('hex'),
    });
    expect(payload.exp! - payload.iat!).toBe(300);
  });

  it('store nothing of that token when a receiver returns it', async () => {
    sink.script(['say back']);
    const test = { url: sink.url, authentication: { scheme: 'Bearer' } };
    const { body } = await gateway.call('POST', '/api/webhooks/test', test);
    expect(sink.received[0]!.headers.authorization).toMatch(/^Bearer ey/);
    expect(body.reply).toBe('Bearer [redacted]');
  });

  it('are replayed by pages, each once, also those that match again at once', async () => {
    const taskId = await send();
    await got(3);
    await settled(taskId, 'delivered');
    // Inserts a thousand older deliveries of the same configuration.
    await gateway.sql(
      `insert into webhook_deliveries (id, org_id, task_id, config_id, seq, status, created_at, body)
       select gen_random_uuid(), org_id, task_id, config_id, 100 + n, 'dead', created_at - n * interval '1 second', '{}'
       from webhook_deliveries, generate_series(1, 1000) n where task_id = $1 and seq = 2`,
      [taskId],
    );
    const replay = (more: object) => gateway.call('POST', '/api/webhooks/deliveries/replay', { taskId, ...more });
    const first = (await replay({})).body;
    const second = (await replay({ cursor: first.nextCursor })).body;
    expect([first.replayed, second]).toEqual([1_000, { replayed: 3, nextCursor: null }]);
    expect((await replay({ state: 'dead', cursor: first.nextCursor })).status).toBe(400);
    await gateway.sql(`update push_configs set state = 'disabled' where task_id = $1`, [taskId]); // no more posts
  });

  it('RI-44: are listed, newest first, by state, and none of another org', async () => {
    sink.script([500]);
    const taskId = await send();
    await got(1);
    const failed = await eventually(
      () => list(`taskId=${taskId}&state=failed`),
      ({ items }) => items.length === 1,
    );
    expect(failed.items[0]).toMatchObject({
      taskId,
      event: 2,
      state: 'failed',
      url: `${sink.url}/hook`,
      attempts: 1,
      maxAttempts: 10,
      lastStatus: 500,
      lastError: 'status_500',
      nextAttemptAt: expect.any(String),
      endedAt: null,
    });
    await eventually(
      () => hurry(gateway),
      () => sink.received.length >= 4,
    );
    await settled(taskId, 'delivered');
    const first = await list(`taskId=${taskId}&limit=2`);
    const second = await list(`taskId=${taskId}&limit=2&cursor=${first.nextCursor}`);
    const ids = [...first.items, ...second.items].map(({ id }: any) => id);
    expect([ids.length, new Set(ids).size, second.nextCursor]).toEqual([3, 3, null]);
    const [{ id }] = failed.items;
    const { body } = await gateway.call('GET', `/api/webhooks/deliveries/${id}`);
    expect(body).toMatchObject({
      id,
      state: 'delivered',
      body: sink.received[0]!.text,
      tries: [
        { number: 1, status: 500, error: 'status_500' },
        { number: 2, status: 200, error: null },
      ],
    });
    expect(JSON.stringify(body)).not.toContain('canary');
    const from = encodeURIComponent(body.createdAt);
    const { body: summary } = await gateway.call('GET', `/api/webhooks/deliveries/summary?from=${from}`);
    expect(summary.counts).toEqual({ pending: 0, processing: 0, delivered: 3, failed: 0, dead: 0, skipped: 0 });

    expect((await list(`taskId=${taskId}`, stranger)).items).toEqual([]);
    for (const [method, path] of [
      ['GET', `/api/webhooks/deliveries/${id}`],
      ['POST', `/api/webhooks/deliveries/${id}/redeliver`],
    ] as const)
      expect((await gateway.call(method, path, undefined, stranger)).status).toBe(404);
    expect((await gateway.call('POST', '/api/webhooks/deliveries/replay', { taskId }, stranger)).body.replayed).toBe(0);
    for (const query of ['limit=101', 'limit=0', 'state=lost', 'cursor=x', 'taskId=x'])
      expect((await gateway.call('GET', `/api/webhooks/deliveries?${query}`)).status).toBe(400);
  });

  it('are not sent again while another delivery of their configuration is in progress', async () => {
    const taskId = await send();
    await settled(taskId, 'delivered');
    const { items } = await list(`taskId=${taskId}`);
    await gateway.sql(
      `update webhook_deliveries set status = 'pending', ended_at = null, lease_until = now() + interval '1 hour'
       where task_id = $1 and seq = (select max(seq) from webhook_deliveries where task_id = $1)`,
      [taskId],
    );
    const oldest = items.at(-1);
    expect((await gateway.call('POST', `/api/webhooks/deliveries/${oldest.id}/redeliver`)).status).toBe(200);
    const rows = () =>
      gateway.sql(
        `select d.status, d.next_at = o.lease_until as waits from webhook_deliveries d
         join webhook_deliveries o on o.task_id = d.task_id and o.lease_until is not null where d.id = $1`,
        [oldest.id],
      );
    expect(await rows()).toEqual([{ status: 'pending', waits: true }]);
    await gateway.sql('update webhook_deliveries set lease_owner = null, lease_until = null where task_id = $1', [
      taskId,
    ]);
    await eventually(
      () => hurry(gateway),
      () => sink.received.length >= items.length + 2,
    );
  });

  it('that are taken over from a lost process use the current configuration', async () => {
    const taskId = await send();
    await settled(taskId, 'delivered');
    await gateway.sql(
      `update webhook_deliveries
       set status = 'pending', ended_at = null, next_at = now(), body = 'of another format',
         lease_until = now() - interval '1 second'
       where task_id = $1 and seq = (select max(seq) from webhook_deliveries where task_id = $1)`,
      [taskId],
    );
    const [, , last, again] = await eventually(
      async () => {
        await hurry(gateway);
        return sink.received;
      },
      ({ length }) => length === 4,
    );
    expect([again!.headers['webhook-id'], again!.text]).toEqual([last!.headers['webhook-id'], last!.text]);
    const [row] = await gateway.sql('select body from webhook_deliveries where id = $1', [last!.headers['webhook-id']]);
    expect(row.body).toBe(last!.text);
  });

  it('that are dead are delivered again, with the same id and body and the whole schedule', async () => {
    sink.script([500], true);
    const taskId = await send();
    await eventually(
      () => hurry(gateway),
      () => sink.received.length >= 30,
    );
    const { items } = await settled(taskId, 'dead');
    expect(items.map(({ attempts }: any) => attempts)).toEqual([10, 10, 10]);

    sink.script([500, 200, 200, 200], true);
    const before = sink.received.length;
    const oldest = items.at(-1);
    const again = await gateway.call('POST', `/api/webhooks/deliveries/${oldest.id}/redeliver`);
    expect([again.status, again.body.maxAttempts]).toEqual([200, 20]);
    const [failed] = (await got(before + 1)).slice(before);
    expect([failed!.headers['webhook-id'], failed!.text]).toEqual([oldest.id, sink.received[0]!.text]);
    await eventually(
      () => hurry(gateway),
      () => sink.received.length >= before + 2,
    );
    const one = () => gateway.call('GET', `/api/webhooks/deliveries/${oldest.id}`);
    await eventually(one, ({ body }) => body.state === 'delivered');

    const replay = await gateway.call('POST', '/api/webhooks/deliveries/replay', { taskId, state: 'dead' });
    expect(replay.body).toEqual({ replayed: 2, nextCursor: null });
    await settled(taskId, 'delivered');
    expect(sink.received.slice(before + 2).map(({ headers }) => headers['webhook-id'])).toEqual(
      items
        .slice(0, 2)
        .reverse()
        .map(({ id }: any) => id),
    );
    expect((await gateway.call('POST', '/api/webhooks/deliveries/replay', {})).status).toBe(400);
  });

  it('for a removed receiver are not delivered again', async () => {
    sink.script([410]);
    const taskId = await send();
    const dead = await eventually(
      () => list(`taskId=${taskId}&state=dead`),
      ({ items }) => items.length === 3,
    );
    const path = `/api/webhooks/deliveries/${dead.items.at(-1).id}/redeliver`;
    const refused = await gateway.call('POST', path);
    expect([refused.status, refused.body.detail]).toEqual([409, expect.stringContaining(`/${taskId}/`)]);
    expect(refused.body.detail).toContain('/activate first');
    expect(sink.received).toHaveLength(1);
  });

  it.each(['v1', 'v0.3', 'task', 'reyn'])(
    'a test event in the format of %s returns the answer of the receiver',
    async (format) => {
      sink.script([{ status: 418, body: 'a teapot with token-9' }]);
      const { secret } = await makeSecret(0);
      const test = { url: sink.url, format, token: 'token-9' };
      const { status, body } = await gateway.call('POST', '/api/webhooks/test', test);
      expect([status, body]).toEqual([
        200,
        {
          delivered: false,
          id: sink.received[0]!.headers['webhook-id'],
          status: 418,
          error: 'status_418',
          detail: null,
          reply: 'a teapot with [redacted]',
          durationMs: expect.any(Number),
        },
      ]);
      expect(verifies(secret, sink.received[0]!)).toBe(true);
      const fine = await gateway.call('POST', '/api/webhooks/test', test);
      expect(fine.body).toMatchObject({ delivered: true, status: 200, error: null });
    },
  );

  it('are kept with their task and configuration until they end, also beyond the retention of tasks', async () => {
    const { TaskRetentionSweeper } = await import('../../../src/tasks/run/task-retention.sweeper.js');
    const { WebhookRetentionSweeper } = await import('../../../src/webhooks/retention/webhook-retention.sweeper.js');
    const sweep = async (): Promise<void> => {
      await gateway.gateway.get(TaskRetentionSweeper).sweep();
      await gateway.gateway.get(WebhookRetentionSweeper).sweep();
    };
    sink.script([500], true);
    const made = await send({ url: `${sink.url}/hook` });
    await got(1);
    await eventually(
      () => gateway.sql('select status_state as state from a2a_tasks where id = $1', [made]),
      ([task]) => task.state === 'completed',
    );
    const old = '01900000-0000-7000-8000-00000000000d';
    await gateway.sql(
      `with ages as (select now() - interval '31 days' as at),
       tasks as (update a2a_tasks set id = $2, updated_at = ages.at from ages where id = $1),
       events as (update a2a_task_events set task_id = $2 where task_id = $1),
       configs as (update push_configs set task_id = $2, created_at = ages.at from ages where task_id = $1)
       update webhook_deliveries set task_id = $2, created_at = ages.at from ages where task_id = $1`,
      [made, old],
    );
    await sweep();
    expect((await list(`taskId=${old}`)).items).toHaveLength(3);
    sink.script([], false);
    sink.received.length = 0;
    await hurry(gateway, old);
    await got(3);
    await settled(old, 'delivered');
    await sweep();
    const left = (table: string, id = 'task_id') => gateway.sql(`select from ${table} where ${id} = $1`, [old]);
    expect([await left('a2a_tasks', 'id'), await left('webhook_deliveries'), await left('push_configs')]).toEqual([
      ...[[], [], []],
    ]);
  });

  it('a test event that does not arrive returns the reason', async () => {
    const { body } = await gateway.call('POST', '/api/webhooks/test', { url: 'http://127.0.0.1:1/hook' });
    expect(body).toMatchObject({
      delivered: false,
      status: null,
      error: 'remote_transport',
      detail: 'The remote side could not be reached: the connection was refused',
    });
  });

  it('abuse 20: a test event is not sent to a forbidden address', async () => {
    for (const url of ['http://169.254.169.254/', 'http://10.0.0.1/'])
      expect((await gateway.call('POST', '/api/webhooks/test', { url })).body.code).toBe('url_not_allowed');
  });
});
