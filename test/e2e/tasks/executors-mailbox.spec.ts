import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Client } from 'pg';
import type { TaskId } from '../../../src/kernel/ids.js';
import { MailboxWaiters } from '../../../src/tasks/external/mailbox-waiters.js';
import { TaskLeases } from '../../../src/tasks/storage/task-lease.store.js';
import { TaskClaimer } from '../../../src/tasks/run/task-claimer.js';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

describe('an agent with tasks in a mailbox', () => {
  let gateway: TestGateway;
  let agent: string;
  let secret: string;
  let agents = 0;

  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  beforeEach(async () => {
    agent = `box-${++agents}`;
    ({ secret } = await publish(gateway, { name: agent, executor: { kind: 'mailbox' } }));
  });
  afterAll(() => gateway.close());

  const leaseAt = async (at: TestGateway, waitMs = 0, token?: string | null) =>
    at.call('POST', `/api/mailbox/${agent}/lease?waitMs=${waitMs}`, undefined, token);
  const lease = (waitMs?: number, token?: string | null) => leaseAt(gateway, waitMs, token);
  const send = async (text: string, more: Record<string, unknown> = {}): Promise<string> => {
    const params = { message: userMessage(text, more), configuration: { returnImmediately: true } };
    return (await rpc(gateway, 'SendMessage', params, { agent })).task.id as string;
  };
  const isThere = ({ length }: unknown[]) => length > 0;
  const readTask = (id: string): Promise<any> => rpc(gateway, 'GetTask', { id }, { agent });
  const report = (id: string, event: Record<string, unknown>, token?: string) =>
    gateway.call('POST', `/api/executions/${id}/events`, event, token);
  const row = async (id: string): Promise<any> =>
    (
      await gateway.sql(
        `select seq, status_state as state, lease_epoch as epoch, crashes, extract(epoch from lease_until) as held
         from a2a_tasks where id = $1`,
        [id],
      )
    )[0];
  /** The gateway records the hand-out after its answer has arrived, and sets the lease again. */
  const holdFor = (id: string, time: string) => {
    const hold = `update a2a_tasks set lease_until = now() + $2::interval where id = $1 and lease_owner is null
      returning extract(epoch from lease_until) as held`;
    return eventually(() => gateway.sql(hold, [id, time]), isThere);
  };
  const loseHolder = (id: string) => holdFor(id, '-1 second');

  it('hands out the oldest task with its earlier messages, and the task is working', async () => {
    const before = await send('first', { contextId: `ctx-${agent}` });
    await lease();
    await report(before, { id: 'z', type: 'complete', text: 'noted', leaseEpoch: (await row(before)).epoch });
    const [older, younger] = [await send('second', { contextId: `ctx-${agent}` }), await send('third')];
    const { status, body } = await lease();
    expect([status, body]).toEqual([
      200,
      {
        task: expect.objectContaining({ id: older, status: expect.objectContaining({ state: 'TASK_STATE_WORKING' }) }),
        message: expect.objectContaining({ parts: [{ text: 'second' }] }),
        history: [
          expect.objectContaining({ parts: [{ text: 'first' }] }),
          expect.objectContaining({ parts: [{ text: 'noted' }] }),
        ],
        token: expect.stringMatching(/^rx1\./),
        caller: expect.objectContaining({ subject: expect.any(String), org: 'default', role: 'admin' }),
        deadline: expect.stringMatching(/^20\d\d-.*Z$/),
        headers: expect.objectContaining({ traceparent: expect.stringMatching(/^00-/), 'x-rialto-depth': '1' }),
        leaseEpoch: (await row(older)).epoch,
        leaseMs: 30_000,
      },
    ]);
    expect((await readTask(older)).status.state).toBe('TASK_STATE_WORKING');
    expect((await lease()).body.task.id).toBe(younger);
    expect((await lease()).status).toBe(204);
  });

  /** Requests a task and does not read the answer, which is larger than the buffers of a connection. */
  const askAndNotRead = async (url: string): Promise<Socket> => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    await once(socket, 'connect');
    socket.on('error', () => undefined).pause();
    const lines = [
      `POST /api/mailbox/${agent}/lease?waitMs=20000 HTTP/1.1`,
      'Host: x',
      `Authorization: Bearer ${gateway.token}`,
    ];
    socket.write([...lines, 'Content-Length: 0', '', ''].join('\r\n'));
    return socket;
  };
  const taken = (id: string) =>
    eventually(
      () => row(id),
      ({ state, held }) => state === 'working' && held !== null,
    );

  it('R2 gives a task with a lost answer to the next worker, and counts no attempt', async () => {
    const wide = await startTestGateway({ RIALTO_MAX_BODY_BYTES: '20000000' }, gateway);
    const other = gateway.beside({ RIALTO_MAX_BODY_BYTES: '20000000' });
    try {
      const params = { message: userMessage('x'.repeat(15_000_000)), configuration: { returnImmediately: true } };
      const { id } = (await rpc(wide, 'SendMessage', params, { agent })).task;
      const first = await askAndNotRead(wide.url);
      await taken(id);
      first.destroy();
      const second = await eventually(
        () => leaseAt(wide),
        ({ status }) => status === 200,
      );
      expect([second.body.task.id, (await row(id)).crashes]).toEqual([id, 0]);
      await report(id, { id: 'a', type: 'ask', text: 'More?', leaseEpoch: second.body.leaseEpoch });
      const answer = { message: userMessage('more', { taskId: id }), configuration: { returnImmediately: true } };
      await rpc(wide, 'SendMessage', answer, { agent });

      const socket = await askAndNotRead(await other.ready);
      const lost = await taken(id);
      other.child.kill('SIGKILL');
      const third = await eventually(
        () => leaseAt(wide),
        ({ status }) => status === 200,
      );
      const anew = await row(id);
      expect([third.body.task.id, anew.crashes]).toEqual([id, 0]);
      expect(Number(anew.held)).toBeGreaterThan(Number(lost.held));
      socket.destroy();
    } finally {
      other.child.kill('SIGKILL');
      await wide.close();
    }
  });

  it('gives each task to one of many workers', async () => {
    const sent = await Promise.all(Array.from({ length: 12 }, (_, n) => send(`t${n}`)));
    const taken = await Promise.all(Array.from({ length: 24 }, () => lease(500)));
    const ids = taken.filter(({ status }) => status === 200).map(({ body }) => body.task.id as string);
    expect(ids.sort()).toEqual(sent.sort());
  });

  it('does not wait for a task that another transaction is changing', async () => {
    const [older, younger] = [await send('x'), await send('y')];
    const client = new Client({ connectionString: gateway.database.url });
    await client.connect();
    await client.query('begin');
    await client.query('select from a2a_tasks where id = $1 for update', [older]);
    expect((await lease()).body.task.id).toBe(younger);
    await client.end();
  });

  it('lets a worker wait, at any process, until a task comes or the time is over', async () => {
    expect((await lease(200)).status).toBe(204);
    const second = await startTestGateway({}, gateway);
    try {
      for (const at of [gateway, second]) {
        Object.assign(at.gateway.get(MailboxWaiters), { polling: true }); // as if it never polled
        const waiting = leaseAt(at, 60_000);
        await eventually(
          () => waitersOf(at),
          (count) => count === 1,
        );
        const id = await send('x');
        expect((await waiting).body.task.id).toBe(id);
      }
    } finally {
      await second.close();
      Object.assign(gateway.gateway.get(MailboxWaiters), { polling: false });
    }
    expect((await lease(60_001)).status).toBe(400);
  });

  const waitersOf = (at: TestGateway): number =>
    (at.gateway.get(MailboxWaiters) as unknown as { waiters: Map<string, unknown> }).waiters.size;

  it('keeps no task for a worker that left; a stop ends waits and tells a sender the state of its task', async () => {
    const leaving = new AbortController();
    const path = `/api/mailbox/${agent}/lease?waitMs=60000`;
    const headers = { authorization: `Bearer ${gateway.token}` };
    const gone = fetch(`${gateway.url}${path}`, { method: 'POST', headers, signal: leaving.signal });
    await eventually(
      () => waitersOf(gateway),
      (count) => count === 1,
    );
    leaving.abort();
    await expect(gone).rejects.toThrow();
    await eventually(
      () => waitersOf(gateway),
      (count) => count === 0,
    );
    const id = await send('x');
    expect([(await lease()).body.task.id, (await row(id)).crashes]).toEqual([id, 0]);

    const elsewhere = `${agent}-2`;
    await publish(gateway, { name: elsewhere, executor: { kind: 'mailbox' } });
    const second = await startTestGateway({}, gateway);
    const waiting = leaseAt(second, 60_000);
    await eventually(
      () => waitersOf(second),
      (count) => count === 1,
    );
    const blocking = rpc(second, 'SendMessage', { message: userMessage('x') }, { agent: elsewhere });
    await eventually(
      () => gateway.sql('select from a2a_tasks where agent_name = $1 and lease_owner is null', [elsewhere]),
      ({ length }) => length === 1,
    );
    await second.close();
    expect(await blocking).toMatchObject({
      task: { status: { state: 'TASK_STATE_SUBMITTED' }, metadata: { partial: true } },
    });
    expect(await waiting).toMatchObject({ status: 503, body: { retryAfterSeconds: 1 } });
  });

  it('X3.3 binds a token to its lease also when the agent is gone, and when the lease is not named', async () => {
    const name = 'passing';
    await publish(gateway, { name, executor: { kind: 'mailbox' } });
    const configuration = { returnImmediately: true };
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x'), configuration }, { agent: name });
    const leased = async () => (await gateway.call('POST', `/api/mailbox/${name}/lease?waitMs=5000`)).body;
    const lost = await leased();
    await loseHolder(task.id);
    const next = await leased();
    await gateway.call('DELETE', `/api/a2a/published/${name}`);
    const end = { id: 'gone', type: 'complete', text: 'mine' };
    expect((await report(task.id, end, lost.token)).status).toBe(409);
    expect((await report(task.id, { ...end, leaseEpoch: next.leaseEpoch }, next.token)).body.state).toBe('completed');
  });

  it('gives the task of a lost holder to the next worker; the lost one changes nothing any more', async () => {
    const id = await send('x');
    const lost = (await lease()).body;
    expect((await lease()).status).toBe(204);
    const waiting = lease(60_000); // a lease that expires is not notified
    await eventually(
      () => waitersOf(gateway),
      (count) => count === 1,
    );
    await loseHolder(id);
    const next = (await waiting).body;
    expect([next.task.id, next.leaseEpoch]).toEqual([id, lost.leaseEpoch + 1]);
    const before = await row(id);
    for (const type of ['heartbeat', 'progress', 'complete']) {
      const late = await report(id, { id: `late-${type}`, type, leaseEpoch: lost.leaseEpoch });
      expect([late.status, late.body.code]).toEqual([409, 'conflict']);
    }
    // X3.3: it can guess the lease number, but its token is valid for its own lease only.
    const guessed = { id: 'guess', type: 'complete', text: 'mine', leaseEpoch: next.leaseEpoch };
    const regained = await report(id, guessed, lost.token);
    expect([regained.status, regained.body.code]).toEqual([409, 'conflict']);
    const forged = lost.token.replace(`.${lost.leaseEpoch}.`, `.${next.leaseEpoch}.`);
    expect((await report(id, guessed, forged)).status).toBe(401);
    expect(await row(id)).toMatchObject({ seq: before.seq, epoch: before.epoch });
    const last = { id: 'z', type: 'complete', text: 'done', leaseEpoch: next.leaseEpoch };
    const done = await report(id, last, next.token);
    expect(done.body).toMatchObject({ taskId: id, state: 'completed' });
  });

  it('lets a holder keep its task by any report', async () => {
    const id = await send('x');
    const { leaseEpoch } = (await lease()).body;
    for (const type of ['heartbeat', 'progress']) {
      const [before] = await holdFor(id, '10 seconds');
      await report(id, { id: type, type, leaseEpoch });
      expect(Number((await row(id)).held)).toBeGreaterThan(Number(before.held));
    }
    const { status, body } = await report(id, { id: 'p', type: 'progress' });
    expect([status, body.violations[0].field]).toEqual([400, 'leaseEpoch']);
  });

  it('AN-78 fails a task with which three holders were lost', async () => {
    const id = await send('x');
    for (let holder = 0; holder < 3; holder++) {
      expect((await lease()).body.task.id).toBe(id);
      await loseHolder(id);
    }
    expect((await lease()).status).toBe(204);
    const { status } = await readTask(id);
    expect([status.state, status.message.parts[0].text]).toEqual([
      'TASK_STATE_FAILED',
      'exceeded 3 attempts: its worker was lost each time',
    ]);
  });

  it('RY-32 takes a task back with each question, and hands it out again with each answer', async () => {
    const id = await send('paint');
    const leaseWith = (query: string) => gateway.call('POST', `/api/mailbox/${agent}/lease?waitMs=2000${query}`);
    const textsOf = ({ history }: any) => history?.map(({ parts }: any) => parts[0].text);
    expect((await leaseWith('&historyLength=-1')).status).toBe(400);
    let epoch = -1;
    for (const [question, answer, query, shown] of [
      ['Which colour?', 'red', '', ['paint']],
      ['Which size?', 'large', '&historyLength=1', ['red']],
      ['Which brush?', 'wide', '&historyLength=0', undefined],
    ] as const) {
      const { leaseEpoch, task: leased } = (await leaseWith(query)).body;
      expect(textsOf(leased)).toEqual(shown);
      expect(leaseEpoch).toBeGreaterThan(epoch);
      epoch = leaseEpoch;
      const asked = { id: question, type: 'ask', text: question, leaseEpoch };
      expect((await report(id, asked)).body.state).toBe('input-required');
      expect((await report(id, asked)).body.state).toBe('input-required');
      expect((await report(id, { id: 'c', type: 'complete', leaseEpoch })).status).toBe(409);
      expect((await lease()).status).toBe(204);
      await send(answer, { taskId: id });
    }
    const { task, message, leaseEpoch } = (await lease(2_000)).body;
    expect(message.parts).toEqual([{ text: 'wide' }]);
    const texts = ['paint', 'Which colour?', 'red', 'Which size?', 'large', 'Which brush?', 'wide'];
    expect(textsOf(task)).toEqual(texts);
    await report(id, { id: 'c', type: 'complete', leaseEpoch });
    expect((await readTask(id)).status.state).toBe('TASK_STATE_COMPLETED');
  });

  it('RY-22 tells the holder of a canceled task at its next report; a waiting one is not given out again', async () => {
    const [held, waits] = [await send('x'), await send('y')];
    const { leaseEpoch } = (await lease()).body;
    for (const id of [held, waits]) await rpc(gateway, 'CancelTask', { id }, { agent });
    const late = await report(held, { id: 'z', type: 'complete', leaseEpoch });
    expect([late.status, late.body]).toMatchObject([409, { code: 'conflict', state: 'canceled' }]);
    expect((await lease()).status).toBe(204);
    for (const id of [held, waits]) expect((await readTask(id)).status.state).toBe('TASK_STATE_CANCELED');
  });

  it('keeps a leased task from the processes of the gateway, even when it is due', async () => {
    const id = await send('x');
    await lease();
    await gateway.sql('update a2a_tasks set next_at = now() where id = $1', [id]);
    expect(await gateway.gateway.get(TaskLeases).claim(id as TaskId)).toBeUndefined();
  });

  it('fails a task that no worker leased within a day', async () => {
    const id = await send('x');
    await eventually(
      () => gateway.sql('select from a2a_tasks where id = $1 and lease_until is null and next_at > now()', [id]),
      ({ length }) => length === 1,
    );
    const aDayAgo = `now() - interval '25 hours'`;
    await gateway.sql(`update a2a_tasks set status_since = ${aDayAgo}, next_at = now() where id = $1`, [id]);
    await (
      await gateway.gateway.get(TaskClaimer).beginTask(id as TaskId)
    )?.ended;
    const { status } = await eventually(
      () => readTask(id),
      (task) => task.status.state === 'TASK_STATE_FAILED',
    );
    expect(status.message.parts[0].text).toBe('no worker fetched the task within a day');
  });

  it('opens with the secret of its agent, and reports need the token of the task, not an administrator', async () => {
    const id = await send('x');
    expect((await lease(0, secret)).body).toMatchObject({ task: { id }, message: { parts: [{ text: 'x' }] } });
    await loseHolder(id);
    const { body: held } = await lease(0, secret);
    const done = { id: 'c', type: 'complete', text: 'done', leaseEpoch: held.leaseEpoch };
    expect((await gateway.call('POST', `/api/executions/${id}/events`, done, held.token)).body.state).toBe('completed');
    expect((await lease(0, secret)).status).toBe(204);
    expect(gateway.log.join('\n')).not.toContain(secret.slice(-43));
  });

  it('is opened by no other secret, and its secret opens nothing else', async () => {
    const other = await publish(gateway, { name: `${agent}-other`, executor: { kind: 'mailbox' } });
    expect((await lease(0, other.secret)).status).toBe(404);
    const forged = [
      `${secret.slice(0, -2)}${secret.endsWith('AA') ? 'BB' : 'AA'}`,
      secret.replace(/^mbx_[^_]+/, `mbx_${other.id}`),
      'mbx_',
    ];
    for (const token of forged) expect((await lease(0, token)).status).toBe(401);
    const id = await send('x');
    for (const [method, path] of [
      ['GET', '/api/keys'],
      ['GET', `/a2a/tasks/${id}`],
      ['POST', `/api/executions/${id}/events`],
      ['POST', `/a2a/agents/${agent}`],
    ] as const)
      expect((await gateway.call(method, path, method === 'POST' ? {} : undefined, secret)).status).toBe(401);
    const { body: next } = await gateway.call('POST', `/api/a2a/published/${agent}/secret`);
    expect((await lease(0, secret)).status).toBe(401);
    expect((await lease(0, next.secret)).body.task.id).toBe(id);
  });

  it('may be leased by administrators of its org, who are audited when they get a task', async () => {
    await send('x');
    await publish(gateway, { name: `echo-${agent}` });
    expect((await lease(0, null)).status).toBe(401);
    expect((await lease(0, await gateway.tokenOf('default', 'bob'))).status).toBe(403);
    expect((await lease(0, await gateway.tokenOf('globex', 'gina', 'admin'))).status).toBe(404);
    expect((await gateway.call('POST', `/api/mailbox/echo-${agent}/lease`)).status).toBe(422);
    expect([(await lease()).status, (await lease()).status]).toEqual([200, 204]);
    const acts = await gateway.sql(
      `select event->>'outcome' as outcome
       from audit_events
       where event->>'verb' = 'mailbox.lease' and event->'resource'->>'id' = 'default'
       order by at desc
       limit 2`,
    );
    expect(acts.map(({ outcome }) => outcome)).toEqual(['completed', 'denied']);
  });
});
