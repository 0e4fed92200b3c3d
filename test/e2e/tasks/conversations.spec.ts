import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { closeRemotes, quick, startRemote } from '../../support/clients/remote-work.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { HttpAgent } from '../../support/stubs/http-agent.js';

const { agent } = HttpAgent;
const older = (text: string, more: object = {}) => ({
  message: { messageId: `o-${Math.random()}`, role: 'user', parts: [{ type: 'text', text }], ...more },
  configuration: { blocking: false },
});

describe('conversations over the tasks of a context', () => {
  let svc: HttpAgent;
  let gateway: TestGateway;
  let bob: string;

  beforeAll(async () => {
    svc = await HttpAgent.start();
    ({ gateway } = svc);
    await publish(gateway);
    bob = await gateway.tokenOf('default', 'bob');
  });
  beforeEach(() => svc.reset());
  afterAll(() => svc.close());

  const list = async (query = '', token?: string) => {
    const { status, body } = await gateway.call('GET', `/api/a2a/conversations${query}`, undefined, token);
    expect(status).toBe(200);
    return body as { items: any[]; nextCursor: string | null };
  };
  const show = (contextId: string, query = '', token?: string) =>
    gateway.call('GET', `/api/a2a/conversations/${encodeURIComponent(contextId)}${query}`, undefined, token);
  const stateOf = async (contextId: string) => (await show(contextId)).body.state as string;
  const say = (text: string, contextId: string, token?: string) =>
    rpc(gateway, 'SendMessage', { message: userMessage(text, { contextId }) }, { token });

  it('RI-02 a context survives as a conversation with the messages of its tasks, also in another process', async () => {
    const contextId = 'trip/Lisbon 1';
    const sent: string[] = [];
    for (const text of ['one', 'two', 'three']) sent.push((await say(text, contextId, bob)).task.id);
    const texts = (items: any[]) => items.map(({ taskId, message }) => [taskId, message.role, message.parts[0].text]);
    const all = ['one', 'two', 'three'].flatMap((text, index) => [
      [sent[index], 'ROLE_USER', text],
      [sent[index], 'ROLE_AGENT', text],
    ]);
    const { body } = await show(contextId, '', bob);
    expect(body).toMatchObject({ contextId, state: 'completed', agent: 'echo', taskId: sent[2] });
    expect(texts(body.messages.items)).toEqual(all);

    const first = (await show(contextId, '?limit=2', bob)).body.messages;
    expect(texts(first.items)).toEqual(all.slice(0, 4));
    const other = await startTestGateway({}, gateway);
    try {
      const path = `/api/a2a/conversations/${encodeURIComponent(contextId)}?limit=2&cursor=${first.nextCursor}`;
      const rest = (await other.call('GET', path, undefined, bob)).body.messages;
      expect([texts(rest.items), rest.nextCursor]).toEqual([all.slice(4), null]);
    } finally {
      await other.close();
    }
    expect((await show(contextId, `?cursor=${first.nextCursor}`)).status).toBe(200); // an admin, the same conversation
    const wrong = await show(contextId, '?cursor=x.y', bob);
    expect([wrong.status, wrong.body.code]).toEqual([400, 'invalid_params']);
  });

  it('RI-02 the list has each conversation once, in pages, and only those of the caller', async () => {
    const carol = await gateway.tokenOf('default', 'carol');
    expect(await list('', carol)).toEqual({ items: [], nextCursor: null });
    for (const [text, context] of [
      ['a', 'c-1'],
      ['b', 'c-2'],
      ['c', 'c-1'],
      ['d', 'c-3'],
    ] as const)
      await say(text, context, carol);
    const pages = [];
    let cursor: string | null = '';
    do {
      const page: Awaited<ReturnType<typeof list>> = await list(`?limit=2${cursor && `&cursor=${cursor}`}`, carol);
      pages.push(page.items.map(({ contextId }) => contextId));
      cursor = page.nextCursor;
    } while (cursor !== null);
    expect(pages).toEqual([['c-3', 'c-1'], ['c-2']]);
    expect((await list('?agent=nothing', carol)).items).toEqual([]);
    expect((await list('?agent=echo&state=completed', carol)).items).toHaveLength(3);
    expect((await gateway.call('GET', '/api/a2a/conversations?state=working')).status).toBe(400);

    const acme = await gateway.tokenOf('acme', 'ann', 'admin');
    for (const token of [bob, acme]) {
      expect((await list('', token)).items.filter(({ contextId }) => contextId === 'c-1')).toEqual([]);
      expect((await show('c-1', '', token)).status).toBe(404);
      expect((await show('c-1', '?owner=user:carol', token)).status).toBe(404);
    }
  });

  it('RI-02 an admin chooses among the callers that use one context', async () => {
    const dave = await gateway.tokenOf('default', 'dave');
    await say("bob's", 'shared', bob);
    await say("dave's", 'shared', dave);
    const textOf = async (query: string) => (await show('shared', query)).body.messages.items[0].message.parts[0].text;
    expect([await textOf(''), await textOf('?owner=user:bob')]).toEqual(["dave's", "bob's"]);
    const owners = (await list()).items.filter(({ contextId }) => contextId === 'shared').map(({ owner }) => owner.id);
    expect(owners).toEqual(['dave', 'bob']);
  });

  it('RI-35 work that its agent has paused is working for every version, and paused in the conversation', async () => {
    const { id, call } = await svc.given('slow down', { contextId: 'ctx-paused' });
    await svc.report(call, { id: 'p', type: 'progress' });
    expect(await stateOf('ctx-paused')).toBe('open');
    expect((await svc.report(call, { id: 'q', type: 'pause', text: 'until noon' })).status).toBe(200);
    expect(await stateOf('ctx-paused')).toBe('paused');
    expect((await list('?state=paused')).items.map(({ taskId }) => taskId)).toEqual([id]);
    expect((await list('?state=open')).items).toEqual([]);
    expect((await rpc(gateway, 'GetTask', { id }, { agent })).status.state).toBe('TASK_STATE_WORKING');
    expect((await rpc(gateway, 'tasks/get', { id }, { agent })).status).toMatchObject({
      state: 'working',
      message: { parts: [{ text: 'until noon' }] },
    });
    expect((await gateway.call('GET', `/a2a/tasks/${id}`)).body.status).toBe('running');
    await svc.report(call, { id: 'r', type: 'progress', text: 'again' });
    expect(await stateOf('ctx-paused')).toBe('open');
    await svc.report(call, { id: 's', type: 'complete', text: 'done' });
    expect(await stateOf('ctx-paused')).toBe('completed');
  });

  it('RI-36 a rejection is rejected for versions that know the word, and failed for the older names', async () => {
    const { id, call } = await svc.given('do wrong', { contextId: 'ctx-rejected' });
    const report = { id: 'x', type: 'reject', text: 'I do not do that; password=hunter2' };
    expect((await svc.report(call, report)).status).toBe(200);
    expect((await svc.report(call, { id: 'y', type: 'complete', text: 'after all' })).status).toBe(409);
    expect((await rpc(gateway, 'GetTask', { id }, { agent })).status.state).toBe('TASK_STATE_REJECTED');
    const told = (await rpc(gateway, 'tasks/get', { id }, { agent })).status;
    expect(told.state).toBe('rejected');
    expect(told.message.parts[0].text).toMatch(/^I do not do that; password=(?!hunter2)/);
    expect((await gateway.call('GET', `/a2a/tasks/${id}`)).body.status).toBe('failed');
    expect(await stateOf('ctx-rejected')).toBe('rejected');

    svc.service.answer = () => ({ status: 200, body: { type: 'reject', text: 'no' } });
    const send = async (method: string) =>
      (await rpc(gateway, method, { ...older('x'), configuration: {} }, { agent })).status.state as string;
    expect([await send('tasks/send'), await send('message/send')]).toEqual(['failed', 'rejected']);
  });

  it('RI-30 RI-31 RI-33 RI-34 the other states of a conversation follow its newest task', async () => {
    await publish(gateway, { name: 'asks', executor: { kind: 'echo', ask: 'Which?' } });
    await publish(gateway, { name: 'asleep', executor: { kind: 'echo', delayMs: 600_000 } });
    await publish(gateway, { name: 'box', executor: { kind: 'mailbox' } });
    const begin = async (name: string) => {
      const params = {
        message: userMessage('x', { contextId: `ctx-${name}` }),
        configuration: { returnImmediately: true },
      };
      return (await rpc(gateway, 'SendMessage', params, { agent: name })).task.id as string;
    };
    const becomes = (name: string, state: string) =>
      eventually(
        () => stateOf(`ctx-${name}`),
        (now) => now === state,
      );
    await begin('asks');
    await becomes('asks', 'input_required');
    await begin('box');
    await becomes('box', 'submitted');
    const id = await begin('asleep');
    await becomes('asleep', 'open');
    await rpc(gateway, 'CancelTask', { id }, { agent: 'asleep' });
    await becomes('asleep', 'canceled');
    const { call } = await svc.given('break', { contextId: 'ctx-broken' });
    await svc.report(call, { id: 'f', type: 'fail', error: 'broke' });
    await becomes('broken', 'failed');
  });
});

describe('a remote agent that pauses its work', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startTestGateway(quick);
  });
  afterAll(async () => {
    await gateway.close();
    await closeRemotes();
  });

  it.each(['v03', 'v1'] as const)(
    'RI-35 is working for A2A callers and paused in the conversation (%s)',
    async (card) => {
      const { agent: remote, slug } = await startRemote(gateway, (it) => it.settle({ state: 'paused' }), {
        card,
        capabilities: { streaming: false },
      });
      let isPaused = true;
      remote.set(
        (it) => it.settle(isPaused ? { state: 'paused' } : { state: 'completed', artifacts: [[{ text: 'done' }]] }),
        'get',
      );
      await publish(gateway, { name: `pausing-${card}`, executor: { kind: 'remote', agentId: slug } });
      const params = { message: userMessage('x'), configuration: { returnImmediately: true } };
      const { task } = await rpc(gateway, 'SendMessage', params, { agent: `pausing-${card}` });
      const state = async () => (await gateway.call('GET', `/api/a2a/conversations/${task.contextId}`)).body.state;
      await eventually(state, (now) => now === 'paused');
      const now = await rpc(gateway, 'GetTask', { id: task.id }, { agent: `pausing-${card}` });
      expect(now.status.state).toBe('TASK_STATE_WORKING');
      isPaused = false;
      await eventually(state, (then) => then === 'completed');
    },
  );
});
