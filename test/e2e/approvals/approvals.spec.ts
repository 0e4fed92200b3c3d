import { removePolicies } from '../../support/checks/policies.js';
import { publish, rpc, rpcCall, userMessage } from '../../support/clients/a2a.js';
import { closeOpened } from '../../support/clients/bridge.js';
import { clientOf, failure } from '../../support/clients/rialto-client.js';
import { eventually } from '../../support/gateway/eventually.js';
import { signToken, startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

const path = '/api/approvals';
const paying = (annotations: string, when = '') =>
  `${annotations} forbid(principal, action == Action::"mcp_call", resource == Tool::"bank__pay") ${when};`;

describe('approvals of acts', () => {
  let gateway: TestGateway;
  let upstream: TestUpstream;
  let bob: string;
  let fay: string;

  beforeAll(async () => {
    gateway = await startTestGateway();
    upstream = await TestUpstream.start();
    upstream.add('pay', ({ to, amount }) => ({
      content: [{ type: 'text', text: `paid ${String(amount)} to ${String(to)}` }],
    }));
    await gateway.call('POST', '/api/mcp/servers', { id: 'bank', url: upstream.url });
    bob = await gateway.tokenOf('default', 'bob');
    await gateway.call('POST', '/api/orgs/default/members', { sub: 'fay', role: 'member', groups: ['finance'] });
    fay = await signToken({ sub: 'fay' });
  });
  beforeEach(() => void (upstream.calls.length = 0));
  afterEach(() => Promise.all([removePolicies(gateway), closeOpened()]));
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
  });

  const store = async (text: string, name = 'ask') => {
    const { status, body } = await gateway.call('POST', '/api/policies', { name, text });
    expect([status, body]).toEqual([201, expect.anything()]);
  };
  const askFinance = () => store(paying('@ask("finance") @expires("10m")'));
  const pay = (args: object = { to: 'ann', amount: 9 }, token = bob, at = gateway) =>
    at.rpc('tools/call', { name: 'bank__pay', arguments: args }, token);
  const asked = async (args?: object, token?: string): Promise<any> => {
    const { error } = await pay(args, token);
    expect(error).toMatchObject({ code: -32207, data: { code: 'approval_required', name: 'ApprovalRequiredError' } });
    return error.data;
  };
  const decide = (id: string, body: object, token = fay) => gateway.call('POST', `${path}/${id}`, body, token);
  const get = async (id: string) => (await gateway.call('GET', `${path}/${id}`)).body;

  it('a call that lacks only an approval waits, then runs exactly once, and is audited with it', async () => {
    await askFinance();
    const { approvalId, approvalUrl, approvers, policies, expiresAt } = await asked();
    expect(approvalUrl).toBe(`${gateway.url}/approvals/${approvalId}`);
    expect([approvers, policies]).toEqual([['finance'], ['ask']]);
    expect(Date.parse(expiresAt)).toBeGreaterThan(Date.now() + 500_000);
    expect((await asked()).approvalId).toBe(approvalId);
    expect(upstream.calls).toEqual([]);
    const approved = await decide(approvalId, { decision: 'approve', reason: 'invoice 7' });
    expect(approved).toMatchObject({ status: 200, body: { state: 'approved', decidedBy: 'user:fay' } });
    expect(approved.body.input).toEqual({ to: 'ann', amount: 9 });
    expect((await pay({ amount: 9, to: 'ann' })).result.content[0].text).toBe('paid 9 to ann');
    expect((await asked()).approvalId).not.toBe(approvalId);
    expect(upstream.calls).toHaveLength(1);

    const { usedBy, state } = await get(approvalId);
    expect(state).toBe('used');
    const { body: decision } = await gateway.call('GET', `/api/audit/decisions/${usedBy}`);
    expect(decision).toMatchObject({
      decision: 'allow',
      outcome: 'completed',
      reason: `approved by user:fay with approval ${approvalId}: invoice 7`,
      policyIds: ['ask'],
      approvalId,
    });
    const { items } = (await gateway.call('GET', `/api/audit/events?sessionId=${approvalId}`)).body;
    expect(items).toMatchObject([{ verb: 'approval.approve', principal: { id: 'fay' }, outcome: 'completed' }]);
    const { items: refusals } = (await gateway.call('GET', '/api/audit/events?type=mcp_call&limit=500')).body;
    expect(refusals[0]).toMatchObject({ outcome: 'denied', error: { code: 'approval_required' } });
    expect((await gateway.call('POST', '/api/audit/verify')).body.valid).toBe(true);
  });

  it('race: one approval used by many calls at once, in two processes: one call runs', async () => {
    await askFinance();
    const second = await startTestGateway({}, gateway);
    const args = { to: 'race', amount: 1 };
    const { approvalId } = await asked(args);
    await decide(approvalId, { decision: 'approve' });
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => pay(args, bob, index % 2 === 0 ? gateway : second)),
    );
    await second.close();
    expect(answers.filter(({ result }) => result)).toHaveLength(1);
    expect(answers.filter(({ error }) => error?.data.code === 'approval_required')).toHaveLength(9);
    expect(upstream.calls).toHaveLength(1);
  });

  it('race: many equal calls at once ask one question, and of two decisions one counts', async () => {
    await askFinance();
    const args = { to: 'many', amount: 1 };
    const ids = await Promise.all(Array.from({ length: 6 }, async () => (await asked(args)).approvalId as string));
    expect(new Set(ids).size).toBe(1);
    const answers = await Promise.all([
      decide(ids[0]!, { decision: 'approve' }),
      decide(ids[0]!, { decision: 'deny' }),
      decide(ids[0]!, { decision: 'approve' }),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    expect((await decide(ids[0]!, { decision: 'approve' })).status).toBe(409);
  });

  it('an approver sees the digits of a number that a double cannot hold', async () => {
    await askFinance();
    const { approvalId } = await asked({ to: 'ann', amount: 12_345_678_901_234_567_890n });
    for (const address of [`/api/approvals/${approvalId}`, '/api/approvals?state=pending']) {
      const answer = await fetch(`${gateway.url}${address}`, { headers: { authorization: `Bearer ${fay}` } });
      expect(await answer.text()).toContain('"amount":12345678901234567890');
    }
  });

  it('race: approved, then the arguments changed: asked again', async () => {
    await askFinance();
    const { approvalId } = await asked({ to: 'ann', amount: 10 });
    await decide(approvalId, { decision: 'approve' });
    for (const args of [
      { to: 'ann', amount: 1000 },
      { to: 'ann', amount: '10' },
      { to: 'ann', amount: 10, memo: '' },
    ])
      expect((await asked(args)).approvalId).not.toBe(approvalId);
    const eve = await gateway.tokenOf('default', 'eve');
    expect((await asked({ to: 'ann', amount: 10 }, eve)).approvalId).not.toBe(approvalId);
    expect(upstream.calls).toEqual([]);
    expect((await pay({ to: 'ann', amount: 10 })).result).toBeDefined();
  });

  it('race: approved, then a policy changed: asked again', async () => {
    await askFinance();
    const { approvalId } = await asked({ to: 'policy', amount: 1 });
    await decide(approvalId, { decision: 'approve' });
    await store('permit(principal == User::"nobody", action, resource);', 'other');
    expect((await asked({ to: 'policy', amount: 1 })).approvalId).not.toBe(approvalId);
    expect(upstream.calls).toEqual([]);
  });

  it('race: expired while it waited for a person, and while it waited for the call', async () => {
    await store(paying('@ask("finance") @expires("1s")'));
    const args = { to: 'late', amount: 1 };
    const first = (await asked(args)).approvalId;
    await eventually(
      () => get(first),
      ({ state }) => state === 'expired',
    );
    expect(await decide(first, { decision: 'approve' })).toMatchObject({ status: 409, body: { state: 'expired' } });
    const second = (await asked(args)).approvalId;
    expect(second).not.toBe(first);
    await decide(second, { decision: 'approve' });
    await eventually(
      () => get(second),
      ({ state }) => state === 'expired',
    );
    const third = (await asked(args)).approvalId;
    expect(upstream.calls).toEqual([]);
    await decide(third, { decision: 'approve', expiresIn: '5m' });
    expect((await pay(args)).result).toBeDefined();
  });

  it('survives the end of the process that asked and took the decision', async () => {
    await askFinance();
    const args = { to: 'restart', amount: 1 };
    const other = await startTestGateway({}, gateway);
    const { error } = await pay(args, bob, other);
    await other.call('POST', `${path}/${error.data.approvalId}`, { decision: 'approve' }, fay);
    await other.close();
    expect((await pay(args)).result).toBeDefined();
  });

  it('a denial reaches the caller with its reason, until it expires', async () => {
    await askFinance();
    const args = { to: 'mallory', amount: 1 };
    const { approvalId } = await asked(args);
    await decide(approvalId, { decision: 'deny', reason: 'unknown payee' });
    const { error } = await pay(args);
    expect(error).toMatchObject({ code: -32003, message: expect.stringContaining('unknown payee') });
    expect(upstream.calls).toEqual([]);
  });

  it('an approval may be for several uses', async () => {
    await askFinance();
    const args = { to: 'thrice', amount: 1 };
    const { approvalId } = await asked(args);
    await decide(approvalId, { decision: 'approve', uses: 3 });
    const answers = await Promise.all(Array.from({ length: 5 }, () => pay(args)));
    expect(answers.filter(({ result }) => result)).toHaveLength(3);
  });

  it('only a person in the groups decides, never the caller of the act; other orgs see nothing', async () => {
    await askFinance();
    const { approvalId } = await asked({ to: 'who', amount: 1 });
    const gina = await gateway.tokenOf('globex', 'gina', 'admin');
    const mia = await gateway.tokenOf('default', 'mia');
    expect((await decide(approvalId, { decision: 'approve' }, gina)).status).toBe(404);
    expect((await decide(approvalId, { decision: 'approve' }, bob)).status).toBe(403);
    expect((await decide(approvalId, { decision: 'approve' }, mia)).status).toBe(403);
    expect((await decide(approvalId, { decision: 'approve' }, gateway.token)).status).toBe(403);
    const seen = async (token?: string) =>
      (await gateway.call('GET', `${path}?state=pending`, undefined, token)).body.items.map((one: any) => one.id);
    expect(await seen(fay)).toContain(approvalId);
    expect(await seen(bob)).toContain(approvalId);
    expect(await seen()).toContain(approvalId);
    const mayDecide = async (token?: string) =>
      (await gateway.call('GET', `${path}/${approvalId}`, undefined, token)).body.mayDecide;
    expect([await mayDecide(fay), await mayDecide(bob), await mayDecide()]).toEqual([true, false, false]);
    expect(await seen(mia)).not.toContain(approvalId);
    expect(await seen(gina)).toEqual([]);
    expect((await gateway.call('GET', `${path}/${approvalId}`, undefined, mia)).status).toBe(404);
    const own = (await asked({ to: 'fay', amount: 1 }, fay)).approvalId;
    expect((await decide(own, { decision: 'approve' }, fay)).body.detail).toContain('may neither approve nor deny it');
    expect((await decide('no-id', { decision: 'approve' })).status).toBe(404);
    expect((await decide(own, { decision: 'maybe' })).status).toBe(400);
  });

  it('refuses a call that is too large to be read, and too many questions of one caller', async () => {
    await askFinance();
    const { error } = await pay({ to: 'x'.repeat(70_000), amount: 1 });
    expect(error).toMatchObject({ data: { code: 'too_large' }, message: expect.stringContaining('65536') });
    const greedy = await gateway.tokenOf('default', 'greedy');
    for (let amount = 0; amount < 95; amount++) await asked({ amount }, greedy);
    const atOnce = await Promise.all(Array.from({ length: 10 }, (_, n) => pay({ amount: 95 + n }, greedy)));
    const codes = atOnce.map(({ error }) => error.data.code).sort();
    expect(codes).toEqual([...Array(5).fill('approval_required'), ...Array(5).fill('rate_limited')]);
    expect((await pay({ amount: 200 }, greedy)).error.data.code).toBe('rate_limited');
    expect((await asked({ amount: 5 }, greedy)).approvalId).toBeDefined();
  });

  it('keeps the content of acts sealed, and lists the tool', async () => {
    await askFinance();
    await asked({ to: 'canary-payee', amount: 1 });
    const rows = await gateway.sql('select * from approvals');
    expect(JSON.stringify(rows)).not.toContain('canary-payee');
    expect(gateway.log.join('')).not.toContain('canary-payee');
    const { result } = await gateway.rpc('tools/list', {}, bob);
    expect(result.tools.map(({ name }: { name: string }) => name)).toContain('bank__pay');
    const question = { principal: 'User::"bob"', action: 'mcp_call', resource: 'Tool::"bank__pay"' };
    const { body } = await gateway.call('POST', '/api/policies/test', question);
    expect(body).toMatchObject({
      ...{ decision: 'ask', approvers: ['finance'], policies: ['ask'] },
      reason: 'approval required by policy "ask"',
    });
  });

  it('a message to an agent is bound with all its parts, and waits with 409 at the REST binding', async () => {
    await publish(gateway);
    await store('@ask forbid(principal, action == Action::"task_submit", resource == PublishedAgent::"echo");');
    const send = (text: string, token = bob) =>
      rpcCall(gateway, 'SendMessage', { message: userMessage(text) }, { token });
    const { body } = await send('deploy');
    const info = body.error.data.find((one: any) => one.metadata?.approvalId);
    expect([body.error.message, info.metadata.approvalUrl]).toEqual([
      expect.stringContaining('/approvals/'),
      expect.stringContaining('/approvals/'),
    ]);
    const client = clientOf({ url: `${gateway.url}/a2a/agents/echo` }, { apiKey: bob });
    const refusal = await failure(client.send('deploy'));
    expect(refusal).toMatchObject({ code: 'remote_error', message: expect.stringContaining('/approvals/') });
    expect(refusal.remoteDetails).toContainEqual(
      expect.objectContaining({
        reason: 'APPROVAL_REQUIRED',
        metadata: expect.objectContaining({ approvalUrl: expect.stringContaining(`${gateway.url}/approvals/`) }),
      }),
    );
    expect((await gateway.sql('select count(*)::int as n from a2a_tasks'))[0].n).toBe(0);
    const rest = await gateway.call('POST', '/a2a/agents/echo/message:send', { message: userMessage('deploy') }, bob);
    expect(rest.status).toBe(409);
    const { approvalId } = info.metadata;
    expect(JSON.stringify((await get(approvalId)).input)).toContain('deploy');
    expect((await decide(approvalId, { decision: 'approve' }, gateway.token)).status).toBe(200);
    expect((await send('destroy')).body.error.message).toContain('a person must approve');
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('deploy') }, { token: bob });
    expect(task.status.state).toBe('TASK_STATE_COMPLETED');
    expect((await send('deploy')).body.error.message).toContain('a person must approve');
  });

  it('a repeat under its idempotency key gets the earlier task, and asks again only when the key is free', async () => {
    await publish(gateway, { name: 'keyed' });
    await store('@ask forbid(principal, action == Action::"task_submit", resource == PublishedAgent::"keyed");');
    const send = (key: string) => {
      const headers = { 'idempotency-key': key };
      const options = { token: bob, agent: 'keyed', headers };
      return rpcCall(gateway, 'SendMessage', { message: userMessage('deploy') }, options);
    };
    const approvalOf = ({ body }: any) =>
      body.error.data.find((one: any) => one.metadata?.approvalId).metadata.approvalId;
    const id = approvalOf(await send('k-1'));
    await decide(id, { decision: 'approve' }, gateway.token);
    const first = (await send('k-1')).body.result.task.id;
    for (let n = 0; n < 2; n++) expect((await send('k-1')).body.result.task.id).toBe(first);
    const count = async () => (await gateway.sql(`select from a2a_tasks where agent_name = 'keyed'`)).length;
    expect(await count()).toBe(1);
    const again = approvalOf(await send('k-2'));
    expect(again).not.toBe(id);
    // A failed task frees its key: the repeat would be work again.
    await gateway.sql(`update a2a_tasks set status_state = 'failed' where id = $1`, [first]);
    expect(approvalOf(await send('k-1'))).toBe(again);
    expect(await count()).toBe(1);
  });

  it('repeats at the same moment get the task of the first one, and use one approval', async () => {
    await publish(gateway, { name: 'at-once' });
    await store('@ask forbid(principal, action == Action::"task_submit", resource == PublishedAgent::"at-once");');
    const send = () =>
      rpcCall(
        gateway,
        'SendMessage',
        { message: userMessage('deploy') },
        { token: bob, agent: 'at-once', headers: { 'idempotency-key': 'k' } },
      );
    const { body } = await send();
    const { approvalId } = body.error.data.find((one: any) => one.metadata?.approvalId).metadata;
    await decide(approvalId, { decision: 'approve' }, gateway.token);
    const answers = await Promise.all(Array.from({ length: 8 }, send));
    expect(new Set(answers.map((one) => one.body.result?.task.id ?? one.body.error.message)).size).toBe(1);
    expect(await gateway.sql(`select from a2a_tasks where agent_name = 'at-once'`)).toHaveLength(1);
    const waiting = await gateway.call('GET', `${path}?state=pending`, undefined, bob);
    expect(waiting.body.items.filter(({ verb }: any) => verb === 'at-once')).toEqual([]);
  });
});
