import { publish, rpc, rpcCall, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startFaultyDatabase, type FaultyDatabase } from '../../support/stubs/faulty-database.js';
import type { TestGateway } from '../../support/gateway/gateway.js';
import { startWebhookSink } from '../../support/stubs/webhook-sink.js';
import { eventRows, tasksWithText } from '../../support/gateway/event-rows.js';

/**
 * Tests a database with connections that break or stall, or that refuses writes: every answer must be true (F22, F24,
 * F25).
 */
describe('a database that fails', () => {
  let database: FaultyDatabase;
  let gateway: TestGateway;

  beforeAll(async () => {
    database = await startFaultyDatabase();
    gateway = await database.gateway();
    await publish(gateway);
    await publish(gateway, { name: 'slow', executor: { kind: 'echo', delayMs: 300 } });
    await publish(gateway, { name: 'mailbox', executor: { kind: 'mailbox' } });
  });
  afterEach(async () => {
    database.proxy.cut();
    await database.proxy.set('pass');
  });
  afterAll(async () => {
    await gateway.close();
    await database.close();
  });

  const send = (text: string, { agent = 'echo', key = '', returnImmediately = false, more = {} } = {}) =>
    rpcCall(
      gateway,
      'SendMessage',
      { message: userMessage(text, more), configuration: { returnImmediately } },
      { agent, ...(key && { headers: { 'idempotency-key': key } }) },
    );
  /** Returns the tasks that a message created, with the counts that must each be one. */
  const createdBy = (text: string) =>
    database.sql(
      `select t.id, t.status_state as state,
         (select count(*)::int from a2a_task_events e where e.task_id = t.id and e.terminal) as ends,
         t.seq - (select count(*)::int from ${eventRows} where task_events.task_id = t.id) as missing
       from a2a_tasks t
       where strpos(t.history::text, $1) > 0 or t.id in ${tasksWithText('$1')}
       order by t.id`,
      [`"${text}"`],
    );
  const completed = (text: string, count = 1) =>
    eventually(
      () => createdBy(text),
      (tasks) => tasks.length >= count && tasks.every(({ state }) => state === 'completed'),
    );
  const unavailable = ({ status, body }: Awaited<ReturnType<typeof send>>) =>
    expect([status, body.error?.data?.[0]?.reason, body.result]).toEqual([503, 'UNAVAILABLE', undefined]);

  describe('F22 a commit with an unknown outcome', () => {
    describe.each(['request', 'answer'] as const)('when its %s was lost', (loses) => {
      it.each([
        ['blocking', 'echo', false, ''],
        ['blocking, of work that takes time', 'slow', false, ''],
        ['queued', 'slow', true, ''],
        ['blocking, with a key', 'slow', false, 'key'],
        ['queued, with a key', 'echo', true, 'key'],
      ])('is one task and one true answer: %s', async (kind, agent, returnImmediately, key) => {
        const text = `${loses} ${kind}`;
        const options = { agent, returnImmediately, key: key && `${kind}-${loses}` };
        database.proxy.cut({ text: new RegExp(text), loses });
        const { status, body } = await send(text, options);
        expect([status, body.error, database.proxy.cuts]).toEqual([200, undefined, 1]);
        const { id } = body.result.task;
        expect(await completed(text)).toEqual([{ id, state: 'completed', ends: 1, missing: 0 }]);
        if (key) expect((await send(text, options)).body.result.task.id).toBe(id);
      });

      it('of one among many does not affect the others', async () => {
        const text = `${loses} many`;
        database.proxy.cut({ text: new RegExp(text), loses, times: 3 });
        const answers = await Promise.all(
          Array.from({ length: 40 }, (_, index) =>
            send(text, { key: `many-${loses}-${index >> 1}`, returnImmediately: index % 4 < 2 }),
          ),
        );
        expect(answers.map(({ status, body }) => [status, body.error])).toEqual(answers.map(() => [200, undefined]));
        const tasks = await completed(text, 20);
        expect(tasks.map(({ ends, missing }) => [ends, missing])).toEqual(tasks.map(() => [1, 0]));
        expect(tasks.map(({ id }) => id)).toEqual(
          [...new Set(answers.map(({ body }) => body.result.task.id as string))].sort(),
        );
      });

      it('of an end or a cancel: the reported end is the stored one', async () => {
        const text = `${loses} ends`;
        database.proxy.cut({ text: /"status_state":"completed"/, loses });
        const { body } = await send(text, { agent: 'slow' });
        expect([database.proxy.cuts, body.result.task.status.state]).toEqual([1, 'TASK_STATE_COMPLETED']);
        const waiting = await rpc(
          gateway,
          'SendMessage',
          { message: userMessage(text), configuration: { returnImmediately: true } },
          { agent: 'mailbox' },
        );
        database.proxy.cut({ text: /"status_state":"canceled"/, loses });
        const { id } = waiting.task;
        const canceled = await rpc(gateway, 'CancelTask', { id }, { agent: 'mailbox' });
        expect([database.proxy.cuts, canceled.status.state]).toEqual([1, 'TASK_STATE_CANCELED']);
        expect((await createdBy(text)).map(({ ends, missing }) => [ends, missing])).toEqual([
          [1, 0],
          [1, 0],
        ]);
      });

      it('that stays unknown is not a success, and a repeat with the key completes it', async () => {
        for (const returnImmediately of [false, true]) {
          const text = `${loses} unknown ${returnImmediately}`;
          const options = { agent: 'slow', key: `unknown-${loses}-${returnImmediately}`, returnImmediately };
          database.proxy.cut({ text: new RegExp(`${text}|tasks-by-id`), loses, times: 1_000 });
          unavailable(await send(text, options));
          database.proxy.cut();
          expect(await createdBy(text)).toHaveLength(loses === 'answer' ? 1 : 0);
          const { body } = await send(text, options);
          expect((await completed(text)).map(({ id }) => id)).toEqual([body.result.task.id]);
        }
      });

      it('of a transaction is 503, and the repeat finds the existing row', async () => {
        const name = `cold-${loses}`;
        const agent = { name, description: 'x', executor: { kind: 'echo' }, a2a_enabled: true };
        const publishIt = () => gateway.call('POST', '/api/a2a/published', agent);
        database.proxy.cut({ text: /COMMIT/, loses });
        expect([(await publishIt()).status, database.proxy.cuts]).toEqual([503, 1]);
        expect((await publishIt()).status).toBe(loses === 'answer' ? 409 : 201);
        expect(await database.sql('select name from published_agents where name = $1', [name])).toHaveLength(1);
      });
    });
  });

  describe('F25 a server that refuses writes', () => {
    const readOnly = async (isOn: boolean) => {
      await database.sql(`alter system set default_transaction_read_only = ${isOn ? 'on' : 'off'}`);
      await database.sql('select pg_reload_conf()');
      await eventually(
        () => gateway.sql('show default_transaction_read_only'),
        ([row]) => row.default_transaction_read_only === (isOn ? 'on' : 'off'),
      );
    };
    const full = async (isOn: boolean) => {
      if (!isOn) return void (await database.sql('drop function disk_is_full cascade'));
      await database.sql(`create function disk_is_full() returns trigger language plpgsql as
        $$ begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$`);
      await database.sql(
        'create trigger full_disk before insert on a2a_task_events for each row execute function disk_is_full()',
      );
      await database.sql(
        'create trigger full_disk before insert on published_agents for each row execute function disk_is_full()',
      );
    };

    it.each([
      ['read-only', readOnly],
      ['with a full disk', full],
    ])('acknowledges nothing and stores no partial change: %s', async (name, spoil) => {
      const { body } = await send(`${name} before`);
      const count = async (table: string): Promise<number> =>
        (await database.sql(`select count(*)::int as count from ${table}`))[0].count;
      const tables = ['a2a_tasks', 'a2a_task_events', 'a2a_idempotency_keys', 'push_configs'];
      const before = await Promise.all(tables.map(count));
      await spoil(true);
      const push = { taskPushNotificationConfig: { url: 'http://127.0.0.1:9/' } };
      try {
        for (const returnImmediately of [true, false]) {
          unavailable(await send(name, { key: `${name}-${returnImmediately}`, returnImmediately }));
          unavailable(await send(name, { agent: 'slow', returnImmediately }));
        }
        const configuration = { returnImmediately: true, ...push };
        unavailable(await rpcCall(gateway, 'SendMessage', { message: userMessage(name), configuration }));
        const agent = { name: 'never', description: 'x', executor: { kind: 'echo' }, a2a_enabled: true };
        expect((await gateway.call('POST', '/api/a2a/published', agent)).status).toBe(503);
        const task = await rpc(gateway, 'GetTask', { id: body.result.task.id });
        expect(task.status.state).toBe('TASK_STATE_COMPLETED');
        expect(await Promise.all(tables.map(count))).toEqual(before);
      } finally {
        await spoil(false);
      }
      const { body: after } = await send(name, { key: `${name}-true` });
      expect((await completed(name)).map(({ id }) => id)).toEqual([after.result.task.id]);
    });
  });

  describe('F24 a connection that stalls', () => {
    it('ends each request with 503, hands over work by the clock of the database, and then continues', async () => {
      await publish(gateway, { name: 'long', executor: { kind: 'echo', delayMs: 20_000 } });
      const text = 'silent';
      const { body } = await send(text, { agent: 'long', returnImmediately: true });
      const { id } = body.result.task;
      const holder = async (): Promise<{ owner: number | null; epoch: number; state: string }> =>
        (
          await database.sql(
            'select lease_owner as owner, lease_epoch as epoch, status_state as state from a2a_tasks where id = $1',
            [id],
          )
        )[0];
      const first = await eventually(holder, ({ epoch, state }) => epoch === 1 && state === 'working');
      await database.proxy.set('blackhole');
      const others = await database.gateway({ RIALTO_ROLE: 'worker' }, true);
      try {
        const answers = await Promise.all([
          ...Array.from({ length: 30 }, (_, index) => send(`${text} ${index}`, { key: `${text}-${index}` })),
          rpcCall(gateway, 'GetTask', { id }, { agent: 'long' }),
        ]);
        for (const { status, body: refused } of answers) expect([status, refused.result]).toEqual([503, undefined]);
        // One cause has one answer: at every endpoint, with Retry-After (R4).
        const tool = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo.echo', arguments: {} } };
        const elsewhere = await Promise.all([
          gateway.call('POST', '/mcp', tool),
          gateway.call('GET', '/api/keys'),
          gateway.call('POST', '/a2a/agents/echo/message:send', { message: userMessage(text) }, gateway.token, {
            'a2a-version': '1.0',
          }),
        ]);
        expect(elsewhere.map(({ status, headers }) => [status, headers.get('retry-after')])).toEqual(
          elsewhere.map(() => [503, '5']),
        );
        expect((await gateway.call('GET', '/livez')).status).toBe(200);
        const second = await eventually(holder, ({ epoch }) => epoch === 2);
        expect(second.owner).not.toBe(first.owner);
        await database.proxy.set('pass');
        const repeats = await eventually(
          () =>
            Promise.all(
              Array.from({ length: 30 }, (_, index) => send(`${text} ${index}`, { key: `${text}-${index}` })),
            ),
          (all) => all.every(({ status }) => status === 200),
        );
        for (const [index, { body: again }] of repeats.entries())
          expect(await completed(`${text} ${index}`)).toEqual([
            { id: again.result.task.id, state: 'completed', ends: 1, missing: 0 },
          ]);
        const end = await eventually(holder, ({ state }) => state === 'completed');
        expect([end.epoch, (await createdBy(text))[0].ends]).toEqual([2, 1]);
      } finally {
        await others.close();
      }
    });

    it('and never ends: its connections are replaced, so the process is alive and receives notices', async () => {
      const lines = () =>
        database.sql(
          `select a.pid, a.application_name as name,
             (select count(*)::int from pg_locks l where l.pid = a.pid and l.classid = 7262920) as locks
           from pg_stat_activity a
           where a.application_name in ('rialto:presence', 'rialto:notices') and a.datname = current_database()
           order by 2`,
        );
      const isWhole = (now: any[]): boolean => now.length === 3 && now[1].locks === 1 && now[2].locks === 1;
      const before = await eventually(lines, isWhole);
      expect(before.map(({ name, locks }) => [name, locks])).toEqual([
        ['rialto:notices', 0],
        ['rialto:presence', 1],
        ['rialto:presence', 1],
      ]);
      database.proxy.freeze();
      await database.sql('select pg_terminate_backend(pid) from unnest($1::int[]) pid', [before.map(({ pid }) => pid)]);
      const after = await eventually(lines, isWhole);
      expect(after.map(({ name }) => name)).toEqual(before.map(({ name }) => name));
      expect(
        (
          await eventually(
            () => send('thawed'),
            ({ status }) => status === 200,
          )
        ).body.error,
      ).toBeUndefined();
    });
  });

  it('that ends every connection six times moves no work and counts no failure (R1)', async () => {
    const sink = await startWebhookSink();
    const other = gateway.beside({ DATABASE_URL: database.url, PORT: '0', METRICS_PORT: '0' });
    try {
      await other.ready;
      const died = other.ended.then((end) => {
        throw new Error(`the other process ended: ${JSON.stringify(end)}`);
      });
      died.catch(() => undefined);
      await publish(gateway, { name: 'patient', executor: { kind: 'echo', delayMs: 6_000 } });
      const text = 'blink';
      const configuration = { returnImmediately: true, taskPushNotificationConfig: { url: sink.url } };
      const sent = await Promise.all(
        Array.from({ length: 12 }, (_, index) =>
          rpc(
            gateway,
            'SendMessage',
            { message: userMessage(`${text} ${index}`), configuration },
            { agent: 'patient' },
          ),
        ),
      );
      const ids = sent.map(({ task }) => task.id as string);
      const rows = (): Promise<any[]> =>
        database.sql(
          `select t.crashes, t.lease_epoch as epoch, t.status_state as state
           from a2a_tasks t
           where t.id = any($1::uuid[])`,
          [ids],
        );
      await eventually(rows, (tasks) => tasks.every(({ state }) => state === 'working'));
      // Two of each process. Those of a broken or terminated connection stay for a moment.
      const presences = async (): Promise<number[]> => {
        const held = await database.sql(`select pid from pg_locks where locktype = 'advisory' and classid = 7262920`);
        return held.map(({ pid }) => pid);
      };
      let before: number[] = [];
      const areBack = (now: number[]): boolean => now.length === 4 && !now.some((pid) => before.includes(pid));
      before = await eventually(presences, areBack);
      for (let blink = 0; blink < 6; blink++) {
        await database.sql(
          `select pg_terminate_backend(pid)
           from pg_stat_activity
           where pid <> pg_backend_pid() and datname = current_database()`,
        );
        before = await Promise.race([eventually(presences, areBack), died]);
      }
      const ended = await eventually(rows, (tasks) => tasks.every(({ state }) => state === 'completed'));
      expect(ended.map(({ crashes, epoch }) => [crashes, epoch])).toEqual(ended.map(() => [0, 1]));
      const deliveries = (): Promise<any[]> =>
        database.sql(
          `select d.status, d.attempts, c.state
           from webhook_deliveries d join push_configs c on c.task_id = d.task_id and c.id = d.config_id
           where d.task_id = any($1::uuid[])`,
          [ids],
        );
      const delivered = await eventually(deliveries, (now) => now.every(({ status }) => status === 'delivered'));
      expect(new Set(delivered.map(({ attempts, state }) => `${attempts} ${state}`))).toEqual(new Set(['1 active']));
    } finally {
      other.child.kill('SIGKILL');
      await other.ended;
      await sink.close();
    }
  });
});
