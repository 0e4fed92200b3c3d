import { removePolicies } from '../../support/checks/policies.js';
import { publish, rpc, rpcCall, rpcError, userMessage } from '../../support/clients/a2a.js';
import { signToken, startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

describe('AN-58 actions/invoke', () => {
  let gateway: TestGateway;
  let upstream: TestUpstream;
  let bob: string;

  beforeAll(async () => {
    gateway = await startTestGateway();
    upstream = await TestUpstream.start();
    const readOnly = { annotations: { readOnlyHint: true } };
    upstream.add('look', (args) => ({ content: [{ type: 'text', text: JSON.stringify(args) }] }), readOnly);
    upstream.add('write', () => ({ content: [] }));
    upstream.add('other', () => ({ content: [] }), readOnly);
    await gateway.call('POST', '/api/mcp/servers', { id: 'files', url: upstream.url });
    await publish(gateway, { name: 'reader', executor: { kind: 'mcp-tool', serverId: 'files', tool: 'look' } });
    await publish(gateway, { name: 'files', executor: { kind: 'mcp-tool', serverId: 'files' } });
    const model = { kind: 'llm', url: 'http://127.0.0.1:9/v1', model: 'm', tools: ['files__l*'] };
    await publish(gateway, { name: 'thinker', executor: model });
    bob = await gateway.tokenOf('default', 'bob');
  });
  beforeEach(() => void (upstream.calls.length = 0));
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
  });

  const invoke = (params: object, agent = 'reader', token = bob) =>
    rpcCall(gateway, 'actions/invoke', params, { agent, token });
  const errorOf = async (...given: Parameters<typeof invoke>) => (await invoke(...given)).body.error;

  it('calls a read-only tool of the agent, without a task', async () => {
    for (const agent of ['reader', 'files', 'thinker']) {
      const { body } = await invoke({ name: 'files__look', input: { path: 'a' } }, agent);
      expect(body.result).toMatchObject({ name: 'files__look', result: { content: [{ text: '{"path":"a"}' }] } });
    }
    expect((await gateway.sql('select count(*)::int as n from a2a_tasks'))[0].n).toBe(0);
    const { items } = (await gateway.call('GET', '/api/audit/events?type=mcp_call')).body;
    expect(items[0]).toMatchObject({ verb: 'files__look', surface: 'a2a', principal: { id: 'bob' } });
  });

  it('refuses a tool that may write, a tool of no or another agent, and unknown names', async () => {
    expect(await errorOf({ name: 'files__write' }, 'files')).toMatchObject({
      message: expect.stringContaining('read-only'),
    });
    for (const [name, agent] of [
      ['files__other', 'reader'],
      ['files__other', 'thinker'],
      ['files__absent', 'files'],
      ['look', 'files'],
    ])
      expect(await errorOf({ name }, agent)).toMatchObject({
        code: -32602,
        message: expect.stringContaining('no action'),
      });
    expect(upstream.calls).toEqual([]);
  });

  it('accepts a name of 200 characters and an input of 64 KiB, and answers -32602 above', async () => {
    const fits = { text: 'x'.repeat(65_536 - '{"text":""}'.length) };
    expect((await invoke({ name: 'files__look', input: fits })).body.result).toBeDefined();
    const more = await errorOf({ name: 'files__look', input: { text: `${fits.text}x` } });
    expect(more).toMatchObject({ code: -32602, message: expect.stringContaining('65537 bytes') });
    expect(await errorOf({ name: 'n'.repeat(200) })).toMatchObject({ message: expect.stringContaining('no action') });
    expect((await errorOf({ name: 'n'.repeat(201) })).code).toBe(-32602);
    for (const params of [{}, { name: 7 }, { name: 'files__look', input: [] }, { name: 'files__look', input: 'x' }])
      expect((await errorOf(params)).code).toBe(-32602);
    expect(upstream.calls).toHaveLength(1);
  });

  it('needs a token that was issued for this gateway', async () => {
    const { id, key } = (await gateway.call('POST', '/api/keys', { name: 'k' })).body;
    for (const token of [gateway.token, key])
      expect(await errorOf({ name: 'files__look' }, 'reader', token)).toMatchObject({
        message: expect.stringContaining('audience'),
      });
    const form = new URLSearchParams({ grant_type: 'client_credentials', client_id: id, client_secret: key });
    const { access_token: token } = (
      await gateway.call('POST', '/oauth/token', form.toString(), null, {
        'content-type': 'application/x-www-form-urlencoded',
      })
    ).body;
    expect((await invoke({ name: 'files__look' }, 'reader', token)).body.result).toBeDefined();
    upstream.calls.length = 0;
    const elsewhere = await signToken({ sub: 'bob', aud: 'another-service' });
    expect((await invoke({ name: 'files__look' }, 'reader', elsewhere)).status).toBe(401);
    expect(upstream.calls).toEqual([]);
  });

  it('obeys the policies for the tool and for the agent', async () => {
    const forbid = async (text: string) =>
      (await gateway.call('POST', '/api/policies', { name: 'no', text })).body.id as string;
    const tool = await forbid('forbid(principal, action == Action::"mcp_call", resource == Tool::"files__look");');
    expect((await errorOf({ name: 'files__look' })).message).toContain('forbidden by policy');
    await gateway.call('DELETE', `/api/policies/${tool}`);
    const agent = await forbid(
      'forbid(principal, action == Action::"task_submit", resource == PublishedAgent::"reader");',
    );
    const denied = await errorOf({ name: 'files__look' });
    expect(denied.message).toContain('forbidden by policy "no"');
    const { items } = (await gateway.call('GET', '/api/audit/events?type=task_submit')).body;
    expect(items[0]).toMatchObject({ verb: 'reader', principal: { id: 'bob' }, outcome: 'denied' });
    const decisions = (await gateway.call('GET', '/api/audit/decisions?decision=deny')).body.items;
    expect(decisions[0]).toMatchObject({ action: 'task_submit', policyIds: ['no'] });
    await gateway.call('DELETE', `/api/policies/${agent}`);
    const gina = await gateway.tokenOf('globex', 'gina', 'admin');
    expect((await invoke({ name: 'files__look' }, 'reader', gina)).body.error).toBeDefined();
    expect(upstream.calls).toEqual([]);
  });
});

describe('policies on messages decide about actions/invoke', () => {
  let gateway: TestGateway;
  let upstream: TestUpstream;
  let bob: string;
  let fay: string;

  beforeAll(async () => {
    gateway = await startTestGateway();
    upstream = await TestUpstream.start();
    upstream.add('count', () => ({ content: [] }), { annotations: { readOnlyHint: true } });
    upstream.add('erase', () => ({ content: [] }));
    await gateway.call('POST', '/api/mcp/servers', { id: 'notes', url: upstream.url });
    await publish(gateway, { name: 'notes', executor: { kind: 'mcp-tool', serverId: 'notes', tool: 'count' } });
    await publish(gateway, { name: 'all', executor: { kind: 'mcp-tool', serverId: 'notes' } });
    bob = await gateway.tokenOf('default', 'bob');
    const groups = ['finance', 'legal'];
    await gateway.call('POST', '/api/orgs/default/members', { sub: 'fay', role: 'member', groups });
    fay = await signToken({ sub: 'fay' });
  });
  beforeEach(() => void (upstream.calls.length = 0));
  afterEach(() => removePolicies(gateway));
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
  });

  const store = async (text: string, name = 'no') =>
    expect((await gateway.call('POST', '/api/policies', { name, text })).status).toBe(201);
  const onSubmit = (when: string, agent = 'notes', annotations = '') =>
    `${annotations} forbid(principal, action == Action::"task_submit", resource == PublishedAgent::"${agent}")
      ${when};`;
  const invoke = async (input: object, agent = 'notes') =>
    (await rpcCall(gateway, 'actions/invoke', { name: 'notes__count', input }, { agent, token: bob })).body;
  const approve = async (id: string) =>
    expect((await gateway.call('POST', `/api/approvals/${id}`, { decision: 'approve' }, fay)).status).toBe(200);

  it('by the input of the action, and by the skill of an agent with all tools of a server', async () => {
    await store(onSubmit('when { context.input.hasTag("text") }'));
    expect((await invoke({ text: 'one two' })).error.message).toContain('forbidden by policy "no"');
    expect((await invoke({ other: 'one' })).result).toBeDefined();
    expect(upstream.calls).toHaveLength(1);
    const named = 'context.input.hasTag("skillId") && context.input.getTag("skillId") == "count"';
    await store(onSubmit(`when { ${named} }`, 'all'), 'no-skill');
    expect((await invoke({ other: 'one' }, 'all')).error.message).toContain('forbidden by policy');
    expect(upstream.calls).toHaveLength(1);
  });

  it('and let a person approve exactly this call, once', async () => {
    await store(onSubmit('', 'notes', '@ask("finance")'));
    const { error } = await invoke({ text: 'one two' });
    expect(error.message).toContain('a person must approve');
    const { approvalId } = error.data[0].metadata;
    const { body } = await gateway.call('GET', `/api/approvals/${approvalId}`, undefined, fay);
    expect(body.input).toEqual({ action: 'notes__count', input: { text: 'one two' } });
    expect(upstream.calls).toEqual([]);
    await approve(approvalId);
    expect((await invoke({ text: 'three' })).error.message).toContain('a person must approve');
    expect((await invoke({ text: 'one two' })).result).toBeDefined();
    expect((await invoke({ text: 'one two' })).error.message).toContain('a person must approve');
    expect(upstream.calls).toHaveLength(1);
  });

  it('and ask no person about an action that is refused in any case', async () => {
    await store(onSubmit('', 'all', '@ask("finance")'));
    const encrypted = { encrypted_payload: Buffer.alloc(64, 1).toString('base64url') };
    for (const [name, input, message] of [
      ['notes__absent', {}, 'has no action'],
      ['notes__erase', {}, 'not marked as read-only'],
      ['notes__count', encrypted, 'does not take'],
    ] as const) {
      const { body } = await rpcCall(gateway, 'actions/invoke', { name, input }, { agent: 'all', token: bob });
      expect(body.error.message).toContain(message);
    }
    expect(await gateway.sql(`select from approvals where resource like '%"all"%'`)).toEqual([]);
    expect((await invoke({ text: 'one' }, 'all')).error.message).toContain('a person must approve');
    expect(await gateway.sql(`select from approvals where resource like '%"all"%'`)).toHaveLength(1);
  });

  it('and an approval is not for another server that gets the name later', async () => {
    const other = await TestUpstream.start();
    other.add('count', () => ({ content: [] }), { annotations: { readOnlyHint: true } });
    await store(onSubmit('', 'notes', '@ask("finance")'));
    const { error } = await invoke({ text: 'moved' });
    const { approvalId } = error.data[0].metadata;
    await approve(approvalId);
    await gateway.call('DELETE', '/api/mcp/servers/notes');
    expect((await gateway.call('POST', '/api/mcp/servers', { id: 'notes', url: other.url })).status).toBe(201);
    const again = await invoke({ text: 'moved' });
    expect(again.error.data[0].metadata.approvalId).not.toBe(approvalId);
    expect([...upstream.calls, ...other.calls]).toEqual([]);
    await gateway.call('DELETE', '/api/mcp/servers/notes');
    await gateway.call('POST', '/api/mcp/servers', { id: 'notes', url: upstream.url });
    await other.close();
  });

  it('and ask one question when the policies on the agent and on the tool both ask', async () => {
    await store(onSubmit('', 'notes', '@ask("finance")'));
    const asksLegal = 'forbid(principal, action == Action::"mcp_call", resource == Tool::"notes__count");';
    await store(`@ask("legal") ${asksLegal}`, 'ask-legal');
    const { error } = await invoke({ text: 'both' });
    expect(error.message).toContain('finance and legal');
    await approve(error.data[0].metadata.approvalId);
    expect((await invoke({ text: 'both' })).result).toBeDefined();
    expect(upstream.calls).toHaveLength(1);
  });
});

describe('AN-59 approvedActions', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startTestGateway();
    await publish(gateway);
    const text =
      '@ask forbid(principal, action == Action::"task_submit", resource == PublishedAgent::"echo") ' +
      'unless { context.approved };';
    const { status } = await gateway.call('POST', '/api/policies', { name: 'ask', text });
    expect(status).toBe(201);
    await gateway.tokenOf('default', 'bob');
  });
  afterAll(() => gateway.close());

  const actions = ['echo'];
  const message = (more: object = {}) => ({ message: { ...userMessage('x'), ...more } });
  const bob = (claims: object = {}) => signToken({ sub: 'bob', ...claims });

  it('approve a verb when a verified token has them', async () => {
    const token = await bob({ approvedActions: ['other', ...actions] });
    for (let call = 0; call < 2; call++)
      expect((await rpc(gateway, 'SendMessage', message(), { token })).task.status.state).toBe('TASK_STATE_COMPLETED');
  });

  it('have no effect in the body, in metadata, in a header, for another verb, or with a key', async () => {
    const token = await bob();
    const key = (await gateway.call('POST', '/api/keys', { name: 'k' })).body.key as string;
    const other = await bob({ approvedActions: ['echo2'] });
    for (const [params, as] of [
      [{ ...message(), approvedActions: actions }, token],
      [{ ...message(), metadata: { approvedActions: actions } }, token],
      [message({ metadata: { approvedActions: actions } }), token],
      [message({ approvedActions: actions }), token],
      [message(), other],
      [{ ...message(), approvedActions: actions }, key],
    ] as const) {
      const { message: why } = await rpcError(gateway, 'SendMessage', params, {
        token: as,
        headers: { 'x-approved-actions': 'echo', approvedActions: 'echo' },
      });
      expect(why).toContain('a person must approve');
    }
  });

  it('are at most ten names; a token with another list, or a changed one, is refused', async () => {
    const ten = await bob({ approvedActions: [...Array.from({ length: 9 }, (_, index) => `a${index}`), 'echo'] });
    expect(await rpc(gateway, 'SendMessage', message(), { token: ten })).toBeDefined();
    for (const approvedActions of [Array.from({ length: 11 }, () => 'echo'), 'echo', [1], [''], ['x'.repeat(201)], {}])
      expect((await rpcCall(gateway, 'SendMessage', message(), { token: await bob({ approvedActions }) })).status).toBe(
        401,
      );
    const [head, , signature] = (await bob()).split('.');
    const claims = { ...JSON.parse(Buffer.from(ten.split('.')[1]!, 'base64url').toString()), approvedActions: actions };
    const forged = [head, Buffer.from(JSON.stringify(claims)).toString('base64url'), signature].join('.');
    expect((await rpcCall(gateway, 'SendMessage', message(), { token: forged })).status).toBe(401);
  });
});
