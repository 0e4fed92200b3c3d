import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { readEvents } from '../../support/gateway/event-rows.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { closeRemotes, quick, startRemote } from '../../support/clients/remote-work.js';
import { data } from '../../support/stubs/stub-behaviours.js';

const immediately = { configuration: { returnImmediately: true } };

const bearer = 'a-static-bearer-of-the-operator';
const legacy = { RIALTO_API_KEY_ENV: 'LEGACY_BEARER', LEGACY_BEARER: bearer };

describe('X3.2, abuse 17: work of a sender that lost access before it began', () => {
  let home: TestGateway;
  beforeAll(async () => void (home = await startTestGateway({ ...quick, RIALTO_ROLE: 'api', ...legacy })));
  afterAll(async () => {
    await home.close();
    await closeRemotes();
  });

  const stateOf = async (id: string): Promise<{ state: string; said: string }> => {
    const [row] = await home.sql('select status_state from a2a_tasks where id = $1', [id]);
    return { state: row.status_state, said: JSON.stringify((await readEvents(home.sql, id)).at(-1)) };
  };
  const rejected = async (id: string): Promise<void> => {
    const { said } = await eventually(
      () => stateOf(id),
      ({ state }) => state === 'rejected',
    );
    expect(said).toContain('the sender of the task has no access any more');
  };
  const newKey = async (name: string, role = 'member') =>
    (await home.call('POST', '/api/keys', { name, role })).body as { id: string; key: string };

  it('is not done after a member was removed or a key was revoked; other senders get their answers', async () => {
    const remote = await startRemote(home, data({ n: 1 }));
    await publish(home, { name: 'ours', executor: { kind: 'remote', agentId: remote.slug } });
    const send = async (token: string): Promise<string> =>
      (await rpc(home, 'SendMessage', { message: userMessage('x'), ...immediately }, { agent: 'ours', token })).task.id;
    const key = await newKey('leaver');
    const [member, service, stayer] = [
      await send(await home.tokenOf('default', 'leaver')),
      await send(key.key),
      await send(await home.tokenOf('default', 'stayer')),
    ];
    expect((await home.call('DELETE', '/api/orgs/default/members/leaver')).status).toBe(204);
    expect((await home.call('DELETE', `/api/keys/${key.id}`)).status).toBe(204);
    const worker = home.beside({ ...quick, RIALTO_ROLE: 'worker' });
    await worker.ready;
    await Promise.all([rejected(member), rejected(service)]);
    await eventually(
      () => stateOf(stayer),
      ({ state }) => state === 'completed',
    );
    expect(remote.agent.requests).toHaveLength(1);
    worker.child.kill('SIGKILL');
    await worker.ended;
  });

  it('of a bearer of the configuration is done, also by a worker without that configuration', async () => {
    await publish(home, { name: 'plain' });
    const options = { agent: 'plain', token: bearer };
    const text = 'permit(principal, action, resource);';
    const policy = await home.call('POST', '/api/policies', { name: 'for services', text });
    expect(policy.status).toBe(201);
    const { task } = await rpc(home, 'SendMessage', { message: userMessage('x'), ...immediately }, options);
    const worker = home.beside({ ...quick, RIALTO_ROLE: 'worker' });
    await eventually(
      () => stateOf(task.id),
      ({ state }) => state === 'completed',
    );
    worker.child.kill('SIGKILL');
    await worker.ended;
    await home.call('DELETE', `/api/policies/${policy.body.id}`);
  });

  it('is decided by the current role', async () => {
    const remote = await startRemote(home, data({ n: 1 }));
    await publish(home, { name: 'picky', executor: { kind: 'remote', agentId: remote.slug } });
    const text = 'forbid(principal in Group::"viewer", action == Action::"a2a_invoke", resource);';
    const policy = await home.call('POST', '/api/policies', { name: 'no viewers', text });
    expect(policy.status).toBe(201);
    const token = await home.tokenOf('default', 'demoted');
    const { task } = await rpc(
      home,
      'SendMessage',
      { message: userMessage('x'), ...immediately },
      { agent: 'picky', token },
    );
    await home.tokenOf('default', 'demoted', 'viewer');
    const worker = home.beside({ ...quick, RIALTO_ROLE: 'worker' });
    await eventually(
      () => stateOf(task.id),
      ({ state }) => state === 'rejected',
    );
    expect(remote.agent.requests).toHaveLength(0);
    worker.child.kill('SIGKILL');
    await worker.ended;
    await home.call('DELETE', `/api/policies/${policy.body.id}`);
  });

  it('is decided by the policies of now on its message', async () => {
    await publish(home, { name: 'deployer' });
    const send = async (branch: string): Promise<string> =>
      (
        await rpc(
          home,
          'SendMessage',
          { message: userMessage('', { parts: [{ data: { branch } }] }), ...immediately },
          { agent: 'deployer' },
        )
      ).task.id;
    const [main, other] = [await send('main'), await send('preview')];
    const when = 'context.input.hasTag("branch") && context.input.getTag("branch") == "main"';
    const text = `forbid(principal, action == Action::"task_submit", resource) when { ${when} };`;
    const policy = await home.call('POST', '/api/policies', { name: 'not main', text });
    expect(policy.status).toBe(201);
    const worker = home.beside({ ...quick, RIALTO_ROLE: 'worker' });
    await eventually(
      () => stateOf(main),
      ({ state, said }) => state === 'rejected' && said.includes('may no longer use this agent'),
    );
    await eventually(
      () => stateOf(other),
      ({ state }) => state === 'completed',
    );
    worker.child.kill('SIGKILL');
    await worker.ended;
    await home.call('DELETE', `/api/policies/${policy.body.id}`);
  });

  it('is not leased from a mailbox', async () => {
    const { id: box } = await publish(home, { name: 'box', executor: { kind: 'mailbox' } });
    const key = await newKey('writer');
    const options = { agent: 'box', token: key.key };
    const { task } = await rpc(home, 'SendMessage', { message: userMessage('x'), ...immediately }, options);
    const mine = await rpc(home, 'SendMessage', { message: userMessage('y'), ...immediately }, { agent: 'box' });
    expect((await home.call('DELETE', `/api/keys/${key.id}`)).status).toBe(204);
    const leased = await home.call('POST', `/api/mailbox/${box}/lease`);
    expect(leased.body.task.id).toBe(mine.task.id);
    await rejected(task.id);
    expect((await home.call('POST', `/api/mailbox/${box}/lease`)).status).toBe(204);
  });
});
