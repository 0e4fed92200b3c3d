import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import {
  askAgain,
  closeRemotes,
  continuationOf,
  quick,
  startRemote,
  type Remote,
} from '../../support/clients/remote-work.js';
import { asyncTask, data, never } from '../../support/stubs/stub-behaviours.js';

describe('policies during remote work', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startTestGateway(quick);
  });
  afterAll(async () => {
    await gateway.close();
    await closeRemotes();
  });

  const rule = async ({ slug }: Remote, name: string, condition = ''): Promise<void> => {
    const text = `forbid(principal, action == Action::"a2a_invoke", resource == Skill::"${slug}.work")${condition};`;
    const { status } = await gateway.call('POST', '/api/policies', { name: `${name}-${slug}`, text });
    expect(status).toBe(201);
  };
  const call = ({ slug }: Remote, args: object) => gateway.rpc('tools/call', { name: `${slug}.work`, arguments: args });
  const stateOf = async (taskId: string) =>
    (await gateway.call('GET', `/api/a2a/tasks/${taskId}`)).body.state as string;

  it('later polls are decided with the arguments of the call, in every process', async () => {
    const one = await startRemote(gateway, asyncTask(30, data({ done: true })));
    await rule(one, 'staging', ' unless { context.input.hasTag("env") && context.input.getTag("env") == "staging" }');
    expect((await call(one, { env: 'prod' })).error.code).toBe(-32003);
    const { taskId } = (await call(one, { env: 'staging' })).result.structuredContent;
    await eventually(
      () => one.agent.requests.filter(({ operation }) => operation === 'get').length,
      (looks) => looks > 2,
    );
    await gateway.sql(
      `update a2a_tasks
       set lease_owner = 7, lease_until = now() + interval '1 hour', next_at = now(), lease_epoch = lease_epoch + 1
       where id = $1`,
      [taskId],
    );
    expect((await askAgain(gateway, taskId)).result.structuredContent).toEqual({ done: true });
    expect((await continuationOf(gateway, taskId)).attempts).toBeGreaterThan(0);
  });

  it.each([
    ['at once', 'failed', 0],
    ['by the sweeper, when the cancel failed', 'completed', 1],
  ])('work that becomes denied ends here, and its remote agent is canceled %s', async (_, status, misses) => {
    const one = await startRemote(gateway, never);
    if (misses > 0) {
      let left = misses;
      one.agent.set((it) => (left-- > 0 ? it.send(503, '') : it.settle({ state: 'canceled' })), 'cancel');
    }
    const { taskId } = (await call(one, {})).result.structuredContent;
    await rule(one, 'never');
    await eventually(
      () => stateOf(taskId),
      (state) => state === 'rejected',
    );
    const row = await eventually(
      () => continuationOf(gateway, taskId),
      ({ ended_at: endedAt }) => endedAt !== null,
    );
    expect(row).toMatchObject({ status, last_error: expect.stringContaining('may no longer use') });
    expect(one.agent.requests.filter(({ operation }) => operation === 'cancel')).toHaveLength(misses + 1);
    const calls = await gateway.sql('select status, error_code from a2a_task_instances where agent_name = $1', [
      one.slug,
    ]);
    expect(calls).toEqual([{ status: 'failed', error_code: 'denied' }]);
  });

  it('ends a task with a removed agent, and reports that its remote agent could not be canceled', async () => {
    const one = await startRemote(gateway, never);
    const { taskId } = (await call(one, {})).result.structuredContent;
    await gateway.sql(
      `update a2a_tasks
       set lease_owner = 7, lease_until = now() + interval '1 hour', lease_epoch = lease_epoch + 1
       where id = $1`,
      [taskId],
    );
    expect((await gateway.call('DELETE', `/api/a2a/agents/${one.slug}`)).status).toBe(204);
    await gateway.sql(`update a2a_tasks set lease_owner = null, lease_until = null, next_at = now() where id = $1`, [
      taskId,
    ]);
    await eventually(
      () => stateOf(taskId),
      (state) => state === 'failed',
    );
    const { body } = await gateway.call('GET', `/api/a2a/tasks/${taskId}`);
    expect(JSON.stringify(body)).toMatch(/"the agent of this task is gone: /);
    const row = await eventually(
      () => continuationOf(gateway, taskId),
      ({ ended_at: endedAt }) => endedAt !== null,
    );
    expect(row).toMatchObject({ status: 'failed', last_error: 'not_found' });
    expect(one.agent.requests.filter(({ operation }) => operation === 'cancel')).toHaveLength(0);
  });
});
