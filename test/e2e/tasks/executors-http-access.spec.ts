import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { type TestGateway } from '../../support/gateway/gateway.js';
import { HttpAgent } from '../../support/stubs/http-agent.js';

const { agent } = HttpAgent;

describe('a service reports', () => {
  let svc: HttpAgent;
  let gateway: TestGateway;

  beforeAll(async () => {
    svc = await HttpAgent.start();
    ({ gateway } = svc);
  });
  beforeEach(() => svc.reset());
  afterAll(() => svc.close());

  const beat = { id: 'h', type: 'heartbeat' };

  it('with the token of exactly this task, which opens nothing else', async () => {
    const [mine, theirs] = [await svc.given(), await svc.given()];
    const { token } = mine.call.body as { token: string };
    expect((await svc.report(mine.call, beat)).status).toBe(200);
    expect((await svc.report(theirs.call, beat, token)).status).toBe(404);
    for (const forged of [
      `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`,
      token.replace(mine.id, theirs.id),
      null,
    ])
      expect((await svc.report(theirs.call, beat, forged)).status).toBe(401);
    expect((await gateway.call('GET', '/api/keys', undefined, token)).status).toBe(401);
    expect((await gateway.call('POST', '/api/mailbox/svc/lease', undefined, token)).status).toBe(401);
  });

  it('or with the credential of an administrator of the org', async () => {
    const { call } = await svc.given();
    const bob = await gateway.tokenOf('default', 'bob');
    const gina = await gateway.tokenOf('globex', 'gina', 'admin');
    for (const token of [bob, gina]) expect((await svc.report(call, beat, token)).status).toBe(404);
    expect((await svc.report(call, beat, gateway.token)).status).toBe(200);
    const mine = await rpc(
      gateway,
      'SendMessage',
      { message: userMessage('x'), configuration: { returnImmediately: true } },
      { agent, token: bob },
    );
    const path = `/api/executions/${mine.task.id}/events`;
    expect((await gateway.call('POST', path, beat, bob)).status).toBe(403);
  });

  it('but not on work of another executor', async () => {
    await publish(gateway, { name: 'sleeper', executor: { kind: 'echo', delayMs: 600_000 } });
    const configuration = { returnImmediately: true };
    const { task } = await rpc(
      gateway,
      'SendMessage',
      { message: userMessage('x'), configuration },
      { agent: 'sleeper' },
    );
    const { status, body } = await gateway.call('POST', `/api/executions/${task.id}/events`, beat);
    expect([status, body.code]).toEqual([409, 'conflict']);
    await rpc(gateway, 'CancelTask', { id: task.id }, { agent: 'sleeper' });
  });

  it('and its body is read only after authentication', async () => {
    const { call } = await svc.given();
    const huge = JSON.stringify({ id: 'x', type: 'progress', text: 'x'.repeat(3_000_000) });
    expect((await svc.report(call, huge, null)).status).toBe(401);
    expect((await svc.report(call, huge)).status).toBe(413);
  });
});
