import { Webhook } from 'standardwebhooks';
import { ReportApplier } from '../../../src/tasks/external/report-applier.js';
import { rpc, rpcCall, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { type TestGateway } from '../../support/gateway/gateway.js';
import { HttpAgent } from '../../support/stubs/http-agent.js';
import { HttpService } from '../../support/stubs/http-service.js';
import { Gate } from '../../support/clients/outside-work.js';

const { agent } = HttpAgent;

describe('an agent with a service as executor', () => {
  let svc: HttpAgent;
  let gateway: TestGateway;
  let service: HttpService;
  let secret: string;

  beforeAll(async () => {
    svc = await HttpAgent.start();
    ({ gateway, service, secret } = svc);
  });
  beforeEach(() => svc.reset());
  afterAll(() => svc.close());

  describe('calls it', () => {
    it('signed as Standard Webhooks, with the task, the earlier messages, and the callback', async () => {
      const first = await svc.given('first', { contextId: 'ctx-1' });
      await svc.report(first.call, { id: 'e', type: 'complete', text: 'noted' });
      const { id, call } = await svc.given('second', { contextId: 'ctx-1' });
      expect(() => new Webhook(secret).verify(call.raw, call.headers as Record<string, string>)).not.toThrow();
      expect(() => new Webhook(secret).verify(`${call.raw} `, call.headers as Record<string, string>)).toThrow();
      expect(call.body).toEqual({
        task: expect.objectContaining({ id, contextId: 'ctx-1' }),
        message: expect.objectContaining({ role: 'ROLE_USER', parts: [{ text: 'second' }], taskId: id }),
        history: [
          expect.objectContaining({ role: 'ROLE_USER', parts: [{ text: 'first' }] }),
          expect.objectContaining({ role: 'ROLE_AGENT', parts: [{ text: 'noted' }] }),
        ],
        agent: 'svc',
        caller: expect.objectContaining({ subject: expect.any(String), org: 'default', role: 'admin' }),
        deadline: expect.stringMatching(/^20\d\d-.*Z$/),
        headers: expect.objectContaining({ traceparent: call.headers.traceparent, 'x-rialto-depth': '1' }),
        callbackUrl: `${gateway.url}/api/executions/${id}/events`,
        token: expect.stringMatching(/^rx1\./),
      });
      expect(gateway.log.join('\n')).not.toContain(call.body.token.slice(-43));
      const rows = await gateway.sql('select t::text as row from a2a_tasks t');
      expect(JSON.stringify(rows)).not.toContain(call.body.token.slice(-43));
    });

    it('and stores no credential of the two, in whichever way the service returns it', async () => {
      const leak = (token: string) => `${token} and ${secret}, ${Buffer.from(secret).toString('base64')}`;
      service.answer = ({ body }) => ({
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: { events: [{ id: 'a', type: 'progress', text: leak(body.token) }] },
      });
      const { id, call } = await svc.given('say it back');
      const artifact = { parts: [{ data: { [call.body.token]: [leak(call.body.token)] } }] };
      expect((await svc.report(call, { id: 'b', type: 'artifact', artifact })).status).toBe(200);
      expect((await svc.report(call, { id: 'c', type: 'fail', text: leak(call.body.token) })).status).toBe(200);
      const visible = JSON.stringify([await svc.eventsOf(id), await svc.taskWhen(id, 'TASK_STATE_FAILED')]);
      for (const one of [call.body.token, secret, Buffer.from(secret).toString('base64').replace(/=+$/, '')])
        expect(visible).not.toContain(one);
      expect(visible).toContain('[redacted] and [redacted], [redacted]');
    });

    it('and its memo never makes the task due at once: a killed process would look like a silent service', async () => {
      await gateway.sql('create table moments (memo json, owner integer, due boolean)');
      await gateway.sql(`create function watch_moments() returns trigger language plpgsql as $$ begin
        insert into moments values (new.memo, new.lease_owner, new.next_at <= now()); return new; end $$`);
      await gateway.sql(
        'create trigger watch_moments before update on a2a_tasks for each row execute function watch_moments()',
      );
      try {
        const { call } = await svc.given('watched');
        await eventually(
          () => gateway.sql(`select 1 from moments where memo->>'reached' is not null and not due`),
          (rows) => rows.length > 0,
        );
        await svc.report(call, { id: 'e', type: 'complete', text: 'done' });
        expect(await gateway.sql(`select * from moments where memo->>'reached' is not null and due`)).toEqual([]);
      } finally {
        await gateway.sql('drop trigger watch_moments on a2a_tasks');
        await gateway.sql('drop function watch_moments');
        await gateway.sql('drop table moments');
      }
    });

    it('again under the same id when it fails, and once when it succeeds', async () => {
      let tries = 0;
      service.answer = () => (++tries < 3 ? { status: 503, headers: { 'retry-after': '0' } } : { status: 202 });
      const { id } = await svc.given();
      expect(service.calls.map(({ headers }) => headers['webhook-id'])).toEqual(Array(3).fill(`${id}-1`));
      expect(new Set(service.calls.map(({ raw }) => raw)).size).toBe(1);
    });

    it('AN-22 five times while it fails; then the task fails, and the caller learns only the status', async () => {
      service.answer = () => ({ status: 500, headers: { 'retry-after': '0' }, body: { stack: 'at secret.ts:1' } });
      const task = await svc.send('x');
      expect(service.calls).toHaveLength(5);
      expect(task.status).toMatchObject({
        state: 'TASK_STATE_FAILED',
        message: { parts: [{ text: 'the service answered 500' }] },
      });
      expect(JSON.stringify(task)).not.toContain('secret');
    });

    it('once when it refuses', async () => {
      service.answer = () => ({ status: 404 });
      expect((await svc.send('x')).status.message.parts).toEqual([{ text: 'the service answered 404' }]);
      expect(service.calls).toHaveLength(1);
    });

    it('and no other server: a redirect is not followed', async () => {
      const elsewhere = await HttpService.start();
      service.answer = () => ({ status: 307, headers: { location: elsewhere.url } });
      const { status } = await svc.send('x');
      expect(status.message.parts).toEqual([{ text: 'the service answered 307; redirects are not followed' }]);
      expect(elsewhere.calls).toEqual([]);
      await elsewhere.close();
    });

    it('to end a canceled task, signed as well', async () => {
      const { id, call } = await svc.given();
      await rpc(gateway, 'CancelTask', { id }, { agent });
      const { body, raw, headers } = await eventually(
        () => service.calls.at(-1)!,
        (last) => last.body.type === 'cancel',
      );
      expect(body).toEqual({ type: 'cancel', taskId: id, agent: 'svc' });
      expect(() => new Webhook(secret).verify(raw, headers as Record<string, string>)).not.toThrow();
      const late = await svc.report(call, { id: 'late', type: 'complete', text: 'too late' });
      expect([late.status, late.body]).toMatchObject([409, { code: 'conflict', taskId: id, state: 'canceled' }]);
    });

    it('not again after five minutes of silence: the task fails', async () => {
      const { id } = await svc.given();
      await gateway.sql(`update a2a_tasks set next_at = now(), memo = '{"reached":1,"reachedAt":1}' where id = $1`, [
        id,
      ]);
      const { status } = await svc.taskWhen(id, 'TASK_STATE_FAILED');
      expect(status.message.parts).toEqual([
        { text: expect.stringContaining('the service sent no report for 5 minutes') },
      ]);
      expect(service.calls).toHaveLength(1);
    });

    it('not again, and without an end, when the task is due before the five minutes are over', async () => {
      const { id, call } = await svc.given();
      const due = () =>
        gateway.sql("select next_at > now() + interval '290 s' as later from a2a_tasks where id = $1", [id]);
      await eventually(due, ([row]) => row.later);
      await gateway.sql('update a2a_tasks set next_at = now() where id = $1', [id]);
      await eventually(due, ([row]) => row?.later !== false);
      expect((await svc.report(call, { id: 'end', type: 'complete' })).body.state).toBe('completed');
      expect(service.calls).toHaveLength(1);
    });

    it('with each answer, also when a late report of the turn before comes in between', async () => {
      const { id, call } = await svc.given();
      await svc.report(call, { id: 'q', type: 'ask', text: 'Which?' });
      service.answer = () => ({ status: 503, headers: { 'retry-after': '30' } });
      const configuration = { returnImmediately: true };
      await rpc(gateway, 'SendMessage', { message: userMessage('this', { taskId: id }), configuration }, { agent });
      const second = () => service.calls.filter(({ headers }) => headers['webhook-id'] === `${id}-2`);
      await eventually(second, ({ length }) => length === 1);
      await svc.report(call, { id: 'h', type: 'heartbeat' });
      await svc.left(id);
      service.answer = () => ({ status: 202 });
      await gateway.sql('update a2a_tasks set next_at = now() where id = $1', [id]);
      await eventually(second, ({ length }) => length === 2);
      expect((await svc.report(call, { id: 'z', type: 'complete' })).body.state).toBe('completed');
    });

    it('again from the next process when one was lost before it knew that the call had arrived', async () => {
      const { id } = await svc.given();
      await gateway.sql(`update a2a_tasks set memo = null, next_at = now() where id = $1`, [id]);
      await eventually(
        () => service.calls.length,
        (count) => count === 2,
      );
      expect(service.calls[1]!.headers['webhook-id']).toBe(service.calls[0]!.headers['webhook-id']);
    });
  });

  describe('takes its answer', () => {
    const answering = (body: unknown) => (service.answer = () => ({ status: 200, body }));

    it('as the result, one event or several', async () => {
      answering({ type: 'complete', text: 'at once' });
      expect((await svc.send('x')).status).toMatchObject({
        state: 'TASK_STATE_COMPLETED',
        message: { parts: [{ text: 'at once' }] },
      });
      answering({
        events: [
          { type: 'artifact', artifact: { name: 'a', parts: [{ kind: 'text', text: 'old spelling' }] } },
          { type: 'complete', message: { parts: [{ data: { n: 1 } }] }, artifacts: [{ parts: [{ text: 'b' }] }] },
        ],
      });
      const task = await svc.send('x');
      expect(task).toMatchObject({
        status: { state: 'TASK_STATE_COMPLETED', message: { parts: [{ data: { n: 1 } }] } },
        artifacts: [{ name: 'a', parts: [{ text: 'old spelling' }] }, { parts: [{ text: 'b' }] }],
      });
      const kinds = (await svc.eventsOf(task.id)).map((body) => Object.keys(body)[0]);
      expect(kinds).toEqual(['task', 'statusUpdate', 'artifactUpdate', 'artifactUpdate', 'statusUpdate']);
    });

    it('as the result also when it reported during the call', async () => {
      service.answer = async (call) => {
        await svc.report(call, { id: 'p', type: 'progress', text: 'half way' });
        await svc.left(call.body.task.id);
        return { status: 200, body: { type: 'complete', text: 'whole' } };
      };
      const task = await svc.send('x');
      expect(task.status).toMatchObject({ state: 'TASK_STATE_COMPLETED', message: { parts: [{ text: 'whole' }] } });
      expect(task.history.map(({ parts }: any) => parts[0].text)).toEqual(['x', 'half way']);
    });

    it.each([
      ['no JSON', 'OK'],
      ['nothing about it', { ok: true }],
      ['an empty list', { events: [] }],
    ])('as a receipt when it contains %s', async (_what, body) => {
      service.answer = () => ({
        status: 200,
        body,
        ...(body === 'OK' && { headers: { 'content-type': 'text/plain' } }),
      });
      const { call, id } = await svc.given();
      await svc.report(call, { id: 'e', type: 'complete' });
      await svc.taskWhen(id, 'TASK_STATE_COMPLETED');
    });

    it('as an error when its events are invalid', async () => {
      answering({ events: [{ type: 'complete' }, { type: 'explode' }] });
      const { status } = await svc.send('x');
      expect(status.state).toBe('TASK_STATE_FAILED');
      expect(status.message.parts[0].text).toMatch(/^the answer of the service has an invalid event: 1\.type: /);
    });
  });

  describe('accepts its reports', () => {
    it('each once, for any repeats and delays', async () => {
      const { id, call } = await svc.given();
      const chunk = {
        id: 'a',
        type: 'artifact',
        artifact: { artifactId: 'doc', parts: [{ text: 'once ' }] },
        append: true,
      };
      const all = await Promise.all(Array.from({ length: 8 }, () => svc.report(call, chunk)));
      expect(all.map(({ status }) => status)).toEqual(Array(8).fill(200));
      const end = { id: 'z', type: 'complete', text: 'done' };
      const done = await svc.report(call, end);
      expect(done.body).toEqual({ taskId: id, state: 'completed', seq: 4 });
      for (const event of [end, chunk]) expect((await svc.report(call, event)).body).toEqual(done.body);
      expect((await svc.report(call, { ...end, id: 'y' })).status).toBe(409);
      const { artifacts } = await svc.taskWhen(id, 'TASK_STATE_COMPLETED');
      expect(artifacts.map(({ parts }: any) => parts)).toEqual([[{ text: 'once ' }]]);
      expect(await svc.eventsOf(id)).toHaveLength(4);
    });

    it('in lists that succeed or fail as a whole', async () => {
      const { id, call } = await svc.given();
      const progress = (n: number) => ({ id: `p${n}`, type: 'progress', text: `step ${n}` });
      const refused = await svc.report(call, [progress(1), { id: 'c', type: 'complete' }, progress(2)]);
      expect([refused.status, await svc.eventsOf(id)]).toMatchObject([409, { length: 2 }]);
      expect((await svc.report(call, [progress(1), progress(1), progress(2)])).body).toMatchObject({
        state: 'working',
        seq: 4,
      });
    });

    it('each of which extends the time of the task by five minutes', async () => {
      const { id, call } = await svc.given();
      await gateway.sql(`update a2a_tasks set next_at = now() + interval '1 minute' where id = $1`, [id]);
      expect((await svc.report(call, { id: 'h', type: 'heartbeat' })).body).toMatchObject({ state: 'working', seq: 2 });
      const [{ left }] = await gateway.sql(
        'select extract(epoch from next_at - now()) as left from a2a_tasks where id = $1',
        [id],
      );
      expect(Number(left)).toBeGreaterThan(290);
    });

    it('RY-28 with questions that show their kind, choices and detail', async () => {
      const { id, call } = await svc.given();
      const question = {
        kind: 'choice',
        choices: [{ id: 'y', label: 'Yes', hotkey: 'y' }, 'No'],
        detail: { file: 'a.txt' },
      };
      await svc.report(call, { id: 'q', type: 'ask', text: 'Delete it?', ...question });
      const { body } = await gateway.call('GET', `/a2a/tasks/${id}`);
      expect(body).toMatchObject({
        run_id: id,
        status: 'input-required',
        question: 'Delete it?',
        agent_name: 'svc',
        ...question,
        choices: [question.choices[0], { id: 'No', label: 'No' }],
      });
      await rpcCall(
        gateway,
        'message/send',
        {
          message: userMessage('yes', { role: 'user', parts: [{ kind: 'text', text: 'yes' }] }),
          task_id: id,
          choice_id: 'y',
          async: true,
        },
        { agent },
      );
      const answer = await eventually(
        () => service.calls.find(({ headers }) => headers['webhook-id'] === `${id}-2`),
        (found) => found !== undefined,
      );
      expect(answer!.body.message).toMatchObject({ parts: [{ text: 'yes' }], metadata: { choice_id: 'y' } });
    });

    it('and leaves the question to its caller, after any later report', async () => {
      const rowOf = (id: string) => gateway.sql('select seq, lease_epoch from a2a_tasks where id = $1', [id]);
      const taken = jest.spyOn(gateway.gateway.get(ReportApplier), 'applyEvents');
      const answering = new Gate();
      service.answer = async (call) => {
        await svc.report(call, { id: 'q', type: 'ask', text: 'Which?' });
        await answering.passed;
        return { status: 202 };
      };
      const { id } = await svc.send('x');
      const row = await rowOf(id);
      answering.open();
      await eventually(
        () => taken.mock.calls.findIndex(([, , more]) => more?.reached === 1),
        (index) => index >= 0 && taken.mock.results[index] !== undefined,
      );
      await Promise.allSettled(taken.mock.results.map(({ value }) => value as Promise<unknown>));
      await svc.report(service.calls[0]!, { id: 'h', type: 'heartbeat' });
      taken.mockRestore();
      // The answer to the question is decided on the row as its caller saw it. If a report changed the row, the answer
      // would be lost.
      expect(await rowOf(id)).toEqual(row);
    });

    it('but not progress that a question has overtaken', async () => {
      const { id, call } = await svc.given();
      await svc.report(call, { id: 'q', type: 'ask', text: 'Sure?' });
      const late = await svc.report(call, { id: 'p', type: 'progress', text: 'still at it' });
      expect([late.status, late.body.state]).toEqual([409, 'input-required']);
      expect((await svc.taskWhen(id, 'TASK_STATE_INPUT_REQUIRED')).status.message.parts).toEqual([{ text: 'Sure?' }]);
    });

    const part = { text: 'x' };
    it.each([
      ['no type', { id: 'e' }, 'type'],
      ['no id', { type: 'heartbeat' }, 'id'],
      ['a long id', { id: 'x'.repeat(129), type: 'heartbeat' }, 'id'],
      ['an unknown member', { id: 'e', type: 'progress', txt: 'x' }, ''],
      [
        'an invalid part',
        { id: 'e', type: 'artifact', artifact: { parts: [part, { text: 'a', url: 'b' }] } },
        'artifact.parts.1',
      ],
      ['invalid bytes', { id: 'e', type: 'artifact', artifact: { parts: [{ raw: '*' }] } }, 'artifact.parts.0.raw'],
      ['no parts', { id: 'e', type: 'progress', message: { parts: [] } }, 'message.parts'],
      ['a question without a text', { id: 'e', type: 'ask' }, ''],
      ['a good event first, and then one without id', [{ id: 'a', type: 'heartbeat' }, { type: 'heartbeat' }], '1.id'],
      ['too many', Array.from({ length: 51 }, (_, n) => ({ id: `e${n}`, type: 'heartbeat' })), ''],
    ])('unless they have %s', async (_what, event, field) => {
      const { call } = await svc.given();
      const { status, body } = await svc.report(call, event);
      expect([status, body.code, body.violations?.[0]?.field]).toEqual([400, 'invalid_params', field]);
    });
  });
});
