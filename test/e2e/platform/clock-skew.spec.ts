import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { tasksWithText } from '../../support/gateway/event-rows.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import type { GatewayProcess } from '../../support/gateway/process.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';

const skewMs = 600_000;
const lifetimeMs = 300_000;
const refreshSeconds = 300;

/**
 * Tests two processes on one database, with clocks ten minutes ahead and ten minutes behind. Due times, leases and
 * order come from the clock of the database.
 */
describe('F26 clocks that differ', () => {
  let home: TestGateway;
  let sink: WebhookSink;
  let remotes: StubAgent[];
  let ahead: { process: GatewayProcess; at: TestGateway };
  let behind: { process: GatewayProcess; at: TestGateway };

  const start = async (clockMs: number): Promise<{ process: GatewayProcess; at: TestGateway }> => {
    const one = home.beside(
      {
        A2A_QUEUED_LIFETIME_MAX_MS: String(lifetimeMs),
        A2A_PROCESSING_LIFETIME_MAX_MS: String(lifetimeMs),
        RIALTO_CARD_REFRESH_SECONDS: String(refreshSeconds),
        TEST_CLOCK_SKEW_MS: String(clockMs),
      },
      { imports: [join(process.cwd(), 'test', 'support', 'gateway', 'skewed-clock.mjs')] },
    );
    const url = await one.ready;
    const call: TestGateway['call'] = async (method, path, body, token = home.token, headers = {}) => {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      const text = await response.text();
      return { status: response.status, headers: response.headers, body: text === '' ? '' : JSON.parse(text) };
    };
    return { process: one, at: { ...home, url, call } };
  };

  beforeAll(async () => {
    home = await startTestGateway({ RIALTO_ROLE: 'api' });
    sink = await startWebhookSink();
    remotes = await Promise.all(['One', 'Two'].map((name) => startStubAgent({ name })));
    await publish(home, { name: 'slow', executor: { kind: 'echo', delayMs: 8_000 } });
    await publish(home, { name: 'asleep', executor: { kind: 'echo', delayMs: 600_000 } });
    await publish(home, { name: 'mailbox', executor: { kind: 'mailbox' } });
    [ahead, behind] = await Promise.all([start(skewMs), start(-skewMs)]);
  });
  afterAll(async () => {
    await Promise.all(remotes.map((remote) => remote.close()));
    await sink.close();
    await home.close();
  });

  const send = async (at: TestGateway, agent: string, more = {}, configuration = {}): Promise<string> =>
    (
      await rpc(
        at,
        'SendMessage',
        { message: userMessage('x', more), configuration: { returnImmediately: true, ...configuration } },
        { agent },
      )
    ).task.id;
  const row = async (id: string) =>
    (
      await home.sql(
        `select status_state as state, lease_epoch as epoch, crashes, lease_owner as owner, status_message as message,
           abs(extract(epoch from status_timestamp - coalesce(status_since, created_at))) > 500 as skewed
         from a2a_tasks
         where id = $1`,
        [id],
      )
    )[0];
  const becomes = (id: string, satisfies: (now: any) => boolean) => eventually(() => row(id), satisfies);

  it('have clocks that differ', async () => {
    for (const { at } of [ahead, behind]) expect((await row(await send(at, 'mailbox'))).skewed).toBe(true);
    await home.sql(`delete from a2a_tasks where agent_name = 'mailbox'`);
  });

  it('take no running work from each other, and store one end of it, in order', async () => {
    const push = { taskPushNotificationConfig: { url: `${sink.url}/ends` } };
    const ids = await Promise.all(
      Array.from({ length: 12 }, (_, index) => send((index % 2 ? ahead : behind).at, 'slow', {}, push)),
    );
    for (const id of ids)
      expect(await becomes(id, ({ state }) => state === 'completed')).toMatchObject({ epoch: 1, crashes: 0 });
    const toldOf = (id: string) =>
      sink.received.flatMap(({ body }) => (body.statusUpdate?.taskId === id ? [body.statusUpdate.status.state] : []));
    for (const id of ids)
      expect(
        await eventually(
          () => toldOf(id),
          (told) => told.at(-1) === 'TASK_STATE_COMPLETED',
        ),
      ).toEqual(['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED']);
  });

  it.each(['ahead', 'behind'])(
    'take over the work that a frozen holder, %s, leaves for longer than its lease',
    async (which) => {
      const holder = which === 'ahead' ? ahead : behind;
      // A caller that waits at the frozen process may get an error, because the reads of that process stopped.
      const answered = rpc(holder.at, 'SendMessage', { message: userMessage(which) }, { agent: 'slow' }).catch(String);
      const [{ id }] = await eventually(
        () =>
          home.sql(`select id from a2a_tasks where id in ${tasksWithText('$1')} and status_state = 'working'`, [
            `"${which}"`,
          ]),
        ({ length }) => length === 1,
      );
      holder.process.child.kill('SIGSTOP');
      const end = await becomes(id, ({ state }) => state === 'completed');
      holder.process.child.kill('SIGCONT');
      expect(end).toMatchObject({ epoch: 2, crashes: 1 });
      await answered;
      expect((await rpc(holder.at, 'GetTask', { id }, { agent: 'slow' })).status.state).toBe('TASK_STATE_COMPLETED');
      const [{ ends }] = await home.sql(
        'select count(*)::int as ends from a2a_task_events where task_id = $1 and terminal',
        [id],
      );
      expect(ends).toBe(1);
    },
  );

  it('fail only the work that takes too long', async () => {
    const young = [await send(behind.at, 'asleep'), await send(ahead.at, 'asleep'), await send(behind.at, 'mailbox')];
    const old = [await send(behind.at, 'asleep'), await send(ahead.at, 'asleep')];
    for (const id of [...young.slice(0, 2), ...old]) await becomes(id, ({ state }) => state === 'working');
    for (const id of old)
      await home.sql(`update a2a_tasks set status_since = status_since - $2 * interval '1 millisecond' where id = $1`, [
        id,
        lifetimeMs + 1_000,
      ]);
    for (const id of old)
      expect((await becomes(id, ({ state }) => state === 'failed')).message.metadata.errorCode).toBe('remote_timeout');
    expect(await Promise.all(young.map(async (id) => (await row(id)).state))).toEqual([
      'working',
      'working',
      'submitted',
    ]);
    for (const [index, id] of young.entries())
      await rpc(home, 'CancelTask', { id }, { agent: index < 2 ? 'asleep' : 'mailbox' });
  });

  it('know the order of messages in a context', async () => {
    const contextId = `context-${randomBytes(4).toString('hex')}`;
    const first = await send(ahead.at, 'mailbox', { contextId, parts: [{ text: 'first' }] });
    const second = await send(behind.at, 'mailbox', { contextId, parts: [{ text: 'second' }] });
    expect(first > second).toBe(true); // ids begin with the time of their creator
    const lease = async () => (await home.call('POST', '/api/mailbox/mailbox/lease?waitMs=10000')).body;
    const leases = [await lease(), await lease()];
    expect(leases.map(({ task }) => task.id)).toEqual([first, second]);
    expect(JSON.stringify(leases[0])).not.toContain('"second"');
    expect(JSON.stringify(leases[1])).toContain('"first"');
  });

  it('refresh cards when they are due, keep running work, and end a grace period in time', async () => {
    for (const [index, { at }] of [ahead, behind].entries()) {
      const slug = `remote_${index}`;
      const { status, body } = await at.call('POST', '/api/a2a/agents', { url: remotes[index]!.url, slug });
      expect([status, body]).toEqual([201, expect.anything()]);
      const due = async () =>
        (
          await home.sql(
            `select next_refresh_at > now() + $2 * interval '0.5 second'
               and next_refresh_at < now() + $2 * interval '1.3 second' as due
             from agent_cards
             where slug = $1`,
            [slug, refreshSeconds],
          )
        )[0].due;
      expect(await due()).toBe(true);
      expect((await at.call('POST', `/api/a2a/agents/${slug}/refetch`)).status).toBe(200);
      expect(await due()).toBe(true);
      const invoked = await at.call('POST', '/api/a2a/invoke', { agentCardId: slug, skillId: 'work' });
      expect(invoked.status).toBe(200);
      const [call] = await home.sql(
        `select status, started_at between now() - interval '1 minute' and now() as began, expires_at > now() as runs,
           ended_at between started_at and now() as ended from a2a_task_instances where agent_name = $1`,
        [slug],
      );
      expect(call).toEqual({ status: 'completed', began: true, runs: true, ended: true });
      const rotate = () => at.call('POST', '/api/orgs/default/secret', { graceSeconds: 300 });
      expect([(await rotate()).status, (await rotate()).status]).toEqual([201, 201]);
      const [secrets] = await home.sql(
        `select count(*)::int as lasting
         from org_secrets
         where retires_at between now() + interval '4 minutes' and now() + interval '6 minutes'`,
      );
      expect(secrets.lasting).toBeGreaterThan(index);
    }
  });
});
