import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { WebSocket } from 'ws';
import { message } from '../../support/clients/a2e.js';
import { publish, rpc, rpcCall, rpcStream, userMessage, type OpenStream } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { HttpService, type Answerer } from '../../support/stubs/http-service.js';
import { again, Neighbourhood, type Misdeed } from '../../support/gateway/neighbourhood.js';
import { closeRemotes, quick } from '../../support/clients/remote-work.js';
import { startStubAgent } from '../../support/stubs/stub-agent.js';
import { never } from '../../support/stubs/stub-behaviours.js';
import { startWebhookSink, type Reply } from '../../support/stubs/webhook-sink.js';

describe('requests of one member of an org do not affect the others', () => {
  let near: Neighbourhood;
  beforeAll(async () => {
    near = await Neighbourhood.start({ ...quick, A2A_CONTINUATION_MAX_ATTEMPTS: '1000' });
    await publish(near.gateway, { name: 'sleepy', executor: { kind: 'echo', delayMs: 600_000 } });
    await publish(near.gateway, { name: 'slow', executor: { kind: 'echo', delayMs: 200, chunks: 3 } });
  });
  afterAll(async () => {
    await near.close();
    await closeRemotes();
  });

  const asMallory = () => ({ token: near.mallory });
  const params = () => ({ message: userMessage('x') });
  const open = async (agent: string): Promise<number> => {
    const [row] = await near.gateway.sql<{ count: number }>(
      'select count(*)::int as count from a2a_tasks where agent_name = $1 and next_at is not null',
      [agent],
    );
    return row!.count;
  };
  /** Sends tasks of `mallory` without waiting for them. */
  const queued = (agent: string, count: number, more: object = {}) =>
    Promise.all(
      Array.from({ length: count }, () =>
        rpc(
          near.gateway,
          'SendMessage',
          { ...params(), configuration: { returnImmediately: true, ...more } },
          { agent, ...asMallory() },
        ),
      ),
    );
  /** Ends rows, in passes over those that the gateway has not locked, so that neither waits for the other. */
  const endAll = async (table: string, change: string, condition: string, values: unknown[] = []) => {
    const found = `select id from ${table} where ${condition}`;
    const end = `update ${table} set ${change} where id in (${found} for update skip locked)`;
    await eventually(
      async () => {
        await near.gateway.sql(end, values);
        return near.gateway.sql(found, values);
      },
      (left) => left.length === 0,
    );
  };
  /** Ends the remaining tasks. */
  const settle = (agent: string) =>
    endAll(
      'a2a_tasks',
      `status_state = 'failed', next_at = null, lease_owner = null, lease_until = null`,
      'agent_name = $1 and next_at is not null',
      [agent],
    );
  const skipDeliveries = () => endAll('webhook_deliveries', `status = 'skipped'`, `status = 'pending'`);

  describe('streams', () => {
    const stream = (agent: string) =>
      rpcStream(near.gateway, 'SendStreamingMessage', params(), { agent, ...asMallory() });

    it('more than allowed, and none of them is read', async () => {
      const streams = await Promise.all(Array.from({ length: 70 }, () => stream('sleepy')));
      const held = streams.filter(({ status }) => status === 200);
      let left = held.length;
      for (const one of held)
        void one.rest().then(
          () => (left -= 1),
          () => (left -= 1),
        );
      expect(held.length).toBeLessThanOrEqual(50);
      await near.proves({
        pending: () => left,
        end: async () => {
          for (const one of streams) one.close();
          await settle('sleepy');
        },
      });
    });

    it('disconnects in the middle, repeatedly', async () => {
      const leave = async (): Promise<void> => {
        const one = await stream('slow');
        await one.next();
        one.close();
      };
      await near.proves(again(leave, 8));
    });

    it('follows tasks that do not exist, or belong to others', async () => {
      const follow = () => rpcCall(near.gateway, 'SubscribeToTask', { id: 'none' }, asMallory());
      await near.proves(again(follow, 8));
    });
  });

  describe('sockets', () => {
    const port = () => Number(new URL(near.gateway.url).port);
    const head = (length: number) =>
      `POST /a2a/agents/echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${near.mallory}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
    const opened = async (): Promise<Socket> => {
      const socket = connect(port(), '127.0.0.1').on('error', () => undefined);
      await once(socket, 'connect');
      return socket;
    };
    /** Holds open sockets that send `begin`, and repeatedly `more`. A closed socket is replaced. */
    const holdSockets = async (count: number, begin: string, more: string): Promise<Misdeed> => {
      const sockets = new Set<Socket>();
      let isOver = false;
      const hold = async (): Promise<void> => {
        const socket = await opened();
        if (isOver) return void socket.destroy();
        sockets.add(socket.pause());
        socket.write(begin);
        socket.once('close', () => {
          sockets.delete(socket);
          if (!isOver) hold().catch(() => undefined);
        });
      };
      await Promise.all(Array.from({ length: count }, hold));
      const timer = setInterval(() => {
        for (const socket of sockets) if (more && socket.writable) socket.write(more);
      }, 50);
      return {
        pending: () => sockets.size,
        end: () => {
          isOver = true;
          clearInterval(timer);
          for (const socket of sockets) socket.destroy();
        },
      };
    };
    const get = () => `GET /api/a2a/agents HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${near.mallory}\r\n\r\n`;
    const held: [string, () => [number, string, string]][] = [
      ['headers that arrive byte by byte', () => [200, 'POST /mcp HTTP/1.1\r\nX-Slow: ', 'x']],
      ['a body that arrives byte by byte', () => [200, head(100_000), ' ']],
      ['a body that never arrives', () => [200, head(100_000), '']],
      ['silent connections', () => [500, '', '']],
      ['unread answers to 100 concurrent requests', () => [20, get().repeat(100), '']],
    ];
    it.each(held)('%s', async (_what, options) => {
      await near.proves(await holdSockets(...options()));
    });

    const invalidBytes: [string, () => string | Buffer][] = [
      ['requests that end in the middle of their bodies', () => `${head(1_000)}{"jsonrpc":`],
      ['bytes that are not HTTP', () => Buffer.alloc(10_000, 0xff)],
      ['a header of 100,000 bytes', () => `GET / HTTP/1.1\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`],
      ['a body of 2,000 levels', () => `${head(4_000)}${'['.repeat(2_000)}${']'.repeat(2_000)}`],
    ];
    it.each(invalidBytes)('%s, repeatedly', async (_what, bytes) => {
      const act = async (): Promise<void> => {
        const socket = await opened();
        socket.resume();
        await new Promise((resolve) => socket.write(bytes(), resolve));
        socket.resetAndDestroy();
      };
      await near.proves(again(act, 8));
    });

    const agents = async (count: number): Promise<WebSocket[]> => {
      const url = `${near.gateway.url.replace('http', 'ws')}/a2e`;
      const headers = { authorization: `Bearer ${near.mallory}` };
      return Promise.all(
        Array.from({ length: count }, async () => {
          const socket = new WebSocket(url, { headers }).on('error', () => undefined);
          await once(socket, 'open');
          return socket;
        }),
      );
    };

    it('an A2E agent that sends many requests and never reads', async () => {
      const sockets = await agents(5);
      for (const socket of sockets) {
        socket.pause();
        for (let count = 0; count < 300; count++) socket.send(JSON.stringify(message('mcp/list_tools')));
      }
      await near.proves({
        pending: () => sockets.filter(({ readyState }) => readyState === WebSocket.OPEN).length,
        end: () => sockets.forEach((socket) => socket.terminate()),
      });
    });

    it('an A2E agent that sends invalid messages and leaves', async () => {
      const act = async (): Promise<void> => {
        const [socket] = await agents(1);
        for (const words of ['no JSON', '[]', '{"type":7}', '{"type":"mcp/none","id":"x"}', Buffer.alloc(1_000)])
          socket!.send(words);
        await new Promise((resolve) => socket!.send('x'.repeat(100_000), resolve));
        socket!.terminate();
      };
      await near.proves(again(act));
    });
  });

  describe('queues', () => {
    const answers: [string, number, Answerer | 'never'][] = [
      ['wait for a service that never answers', 500, 'never'],
      ['fail at each try', 40, () => ({ status: 503 })],
      ['are refused', 40, () => ({ status: 400, body: 'x'.repeat(100_000) })],
      ['get invalid answers', 40, () => ({ status: 200, body: '{"status": 7, "artifacts": [[' })],
      ['get an incomplete state', 40, () => ({ status: 200, body: { state: 'nearly done', parts: [null] } })],
    ];
    it.each(answers)('tasks that %s', async (_what, count, answer) => {
      const service = near.keep(await HttpService.start());
      let isOver = false;
      const waiting: (() => void)[] = [];
      service.answer = (call) => {
        if (isOver) return { status: 400 };
        return answer === 'never'
          ? new Promise((resolve) => waiting.push(() => resolve({ status: 400 })))
          : answer(call);
      };
      const name = near.name();
      await publish(near.gateway, { name, executor: { kind: 'http', url: service.url } }, near.mallory);
      await queued(name, count);
      // A new task is sent when the one before has ended.
      let last: OpenStream | undefined;
      const more = again(async () => {
        last = await rpcStream(near.gateway, 'SendStreamingMessage', params(), { agent: name, ...asMallory() });
        await last.rest();
      }, 1);
      await near.proves({
        pending: () => (service.calls.length > 0 ? more.pending() : 0),
        end: async () => {
          isOver = true;
          for (const resolve of waiting) resolve();
          const over = more.end!();
          last?.close();
          await over;
          await settle(name);
        },
      });
    });

    it('200 tasks in a mailbox without a worker', async () => {
      const name = near.name();
      await publish(near.gateway, { name, executor: { kind: 'mailbox' } }, near.mallory);
      await queued(name, 200);
      await near.proves({ pending: () => open(name), end: () => settle(name) });
    });
  });

  describe('webhooks', () => {
    const replies: [string, Reply][] = [
      ['never answer', 'hang'],
      ['break off', 'break off'],
      ['answer 500', 500],
      ['answer 429', { status: 429, headers: { 'retry-after': '1' } }],
      ['redirect to themselves', { status: 307, headers: { location: '/' } }],
    ];
    it.each(replies)('at receivers that %s', async (_what, reply) => {
      const sinks = await Promise.all(Array.from({ length: 3 }, () => startWebhookSink()));
      for (const sink of sinks) near.keep(sink).script([reply], true);
      for (const { url } of sinks) await queued('echo', 20, { taskPushNotificationConfig: { url } });
      const pending = async () => {
        const [row] = await near.gateway.sql<{ count: number }>(
          `select count(*)::int as count from webhook_deliveries where status = 'pending'`,
        );
        return sinks.every(({ received }) => received.length > 0) ? row!.count : 0;
      };
      await near.proves({ pending, end: skipDeliveries });
    });

    it('abuse 36: at so many hanging hosts that their posts use all slots of the org', async () => {
      const sinks = await Promise.all(Array.from({ length: 6 }, () => startWebhookSink()));
      for (const sink of sinks) near.keep(sink).script(['hang'], true);
      const sent = await Promise.all(
        sinks.map(({ url }) => queued('echo', 12, { taskPushNotificationConfig: { url } })),
      );
      const tasks = sent.flat().map(({ task }) => task.id);
      const posts = () => sinks.reduce((sum, { received }) => sum + received.length, 0);
      const ended = () =>
        near.gateway.sql(
          `select a.error
           from webhook_attempts a join webhook_deliveries d on d.id = a.delivery_id
           where d.task_id = any($1)`,
          [tasks],
        );
      try {
        await eventually(posts, (count) => count >= 24);
        await near.isNotified();
        expect(await ended()).toEqual([]);
        expect(posts()).toBe(24);
      } finally {
        await skipDeliveries();
      }
    });
  });

  describe('policy sets', () => {
    const path = '/api/policies';
    const store = (name: string, text: string) => near.gateway.call('POST', path, { name, text }, near.mallory);
    const drop = (id: string) => near.gateway.call('DELETE', `${path}/${id}`, undefined, near.mallory);

    it('the heaviest allowed ones, changed repeatedly', async () => {
      let stored = 0;
      const act = async (): Promise<void> => {
        const list = Array.from({ length: 1_950 }, (_, index) => index * 7 + stored).join(',');
        const when = `[${list}].contains(context.depth + 100000)`;
        const { status, body } = await store(
          near.name('heavy'),
          `forbid(principal == User::"mallory", action, resource) when { ${when} };`,
        );
        expect(status).toBe(201);
        stored += 1;
        expect((await drop(body.id)).status).toBe(204);
      };
      const loop = again(act, 1);
      await near.proves({ ...loop, pending: () => (stored > 0 ? loop.pending() : 0) });
    });

    it('invalid ones, which are not stored', async () => {
      const versionOf = async () =>
        (await near.gateway.sql(`select policy_version from orgs where slug = 'default'`))[0];
      const before = await versionOf();
      const statuses = new Set<number>();
      const texts = [
        'permit(principal, action resource);',
        'forbid(',
        `permit(principal, action, resource) when { ${'('.repeat(500)}true${')'.repeat(500)} };`,
        'x'.repeat(100_000),
      ];
      const act = async (): Promise<void> => {
        for (const text of texts) statuses.add((await store(near.name('none'), text)).status);
      };
      const loop = again(act, 2);
      await near.proves({ ...loop, pending: () => (statuses.size > 0 ? loop.pending() : 0) });
      expect([...statuses]).toEqual([422]);
      expect(await versionOf()).toEqual(before);
    });
  });

  describe('sweeps', () => {
    it('search for the work of unreachable agents', async () => {
      const stub = near.keep(await startStubAgent({ card: 'v03', name: 'Dead', behaviour: never }));
      // A call waits this long before it continues as a task, and many concurrent ones must be sent within it.
      const slug = await near.register('agent', { url: stub.url, timeoutMs: 5_000 });
      const call = () => near.gateway.rpc('tools/call', { name: `${slug}.work`, arguments: {} }, near.mallory);
      const answers = await Promise.all(Array.from({ length: 40 }, call));
      for (const { result } of answers) expect(result.structuredContent.taskId).toBeDefined();
      await stub.down();
      const pending = async () =>
        (await near.gateway.sql('select task_id from a2a_continuations where next_at is not null')).length;
      await near.proves({ pending, end: () => near.gateway.call('DELETE', `/api/a2a/agents/${slug}`) });
    });

    it('drop thousands of expired tasks', async () => {
      await queued('echo', 5);
      await eventually(
        () => open('echo'),
        (count) => count === 0,
      );
      const old = async () =>
        (
          await near.gateway.sql(
            `select count(*)::int as count from a2a_tasks where updated_at < now() - interval '300 days'`,
          )
        )[0].count;
      const columns = (
        await near.gateway.sql<{ column_name: string }>(
          `select column_name from information_schema.columns where table_name = 'a2a_tasks' and is_generated = 'NEVER'
           and column_name not in ('id', 'updated_at')`,
        )
      ).map(({ column_name: name }) => name);
      const inserted = await near.gateway.sql(
        `insert into a2a_tasks (id, updated_at, ${columns.join()})
         select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, now() - interval '400 days',
           ${columns.map((name) => `t.${name}`).join()}
         from (select * from a2a_tasks where agent_name = 'echo' limit 1) t, generate_series(1, 5000) n
         returning id`,
      );
      expect(inserted).toHaveLength(5_000);
      const { TaskRetentionSweeper } = await import('../../../src/tasks/run/task-retention.sweeper.js');
      const sweeper = near.gateway.gateway.get(TaskRetentionSweeper);
      const sweeping = again(() => sweeper.sweep(), 1);
      await near.proves(sweeping);
      expect(await old()).toBe(0);
    });
  });
});
