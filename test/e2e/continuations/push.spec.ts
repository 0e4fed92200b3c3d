import { randomBytes } from 'node:crypto';
import { newId } from '../../../src/kernel/ids.js';
import { PushTokens } from '../../../src/continuations/push/push-tokens.js';
import { PublicUrl } from '../../../src/platform/http/public-url.js';
import { Vault } from '../../../src/platform/secrets/vault.js';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { closeRemotes, continuationOf, quick, startRemote, type Remote } from '../../support/clients/remote-work.js';
import { never, sequence, state, text } from '../../support/stubs/stub-behaviours.js';
import type { StubAgentOptions } from '../../support/stubs/stub-agent.js';
import type { Behaviour } from '../../support/stubs/stub-call.js';

const publicUrl = 'https://gateway.example/rialto';
/** Settings under which deferred work is not polled during a test, except after a push. */
const pushOnly = {
  ...quick,
  RIALTO_PUBLIC_URL: publicUrl,
  A2A_CONTINUATION_RESCHEDULE_MS: '600000',
  A2A_CONTINUATION_PRECLAIM_WAIT_MS: '200',
  A2A_CONTINUATION_RUN_WAIT_MS: '200',
  A2A_CONTINUATION_POLL_TIMEOUT_MS: '5000',
};
const tokensOf = (vault: Vault, RIALTO_PUBLIC_URL: string | undefined, production: boolean) =>
  new PushTokens(vault, new PublicUrl({ RIALTO_PUBLIC_URL, HOST: '127.0.0.1', PORT: 3000, GRPC_PORT: undefined }), {
    production,
  });
const pushing = { capabilities: { streaming: false, pushNotifications: true } };

describe('remote work with an agent that pushes', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startTestGateway(pushOnly);
  });
  afterAll(async () => {
    await gateway.close();
    await closeRemotes();
  });

  // Its first request may also be the first of its gateway, which is slow.
  const remote = (options: StubAgentOptions & { timeoutMs?: number } = {}, of = gateway) =>
    startRemote(of, never, { ...pushing, timeoutMs: 1_000, ...options });
  const configurationOf = ({ agent }: Remote): any => {
    const { json } = agent.requests.find(({ operation }) => operation === 'send')!;
    return ((json as any).params ?? json).configuration ?? {};
  };
  /** Returns the path of the push URL that an agent received. */
  const addressOf = (one: Remote): string => {
    const { taskPushNotificationConfig: newer, pushNotificationConfig: older } = configurationOf(one);
    return (newer ?? older).url.replace(publicUrl, '');
  };
  const push = (path: string, body: unknown = { task: {} }, of = gateway) => of.call('POST', path, body, null);
  const pollsOf = ({ agent }: Remote) => agent.requests.filter(({ operation }) => operation === 'get').length;
  const stateOf = async (taskId: string) =>
    (await gateway.sql('select status_state as state from a2a_tasks where id = $1', [taskId]))[0]?.state;
  const remembered = (taskId: string) => gateway.sql('select from remote_pushes where task_id = $1', [taskId]);
  const putOff = (taskId: string) =>
    eventually(
      () => continuationOf(gateway, taskId),
      (row) => row?.status === 'pending',
    );
  const completed = (taskId: string) =>
    eventually(
      () => stateOf(taskId),
      (found) => found === 'completed',
    );

  it.each([
    ['v1', 'taskPushNotificationConfig', {}],
    ['v03', 'pushNotificationConfig', {}],
    ['v1', 'taskPushNotificationConfig', { speaks: ['v1-rest'] }],
  ] as const)('a call of a %s agent continues after its push (%s)', async (card, member, more) => {
    const one = await remote({ card, ...more } as StubAgentOptions);
    const { taskId } = await one.handed();
    expect(configurationOf(one)[member].url).toMatch(
      /^https:\/\/gateway\.example\/rialto\/api\/a2a\/pushes\/[\w-]{86}$/,
    );
    const row = await putOff(taskId);
    expect(row.next_at.getTime() - Date.now()).toBeGreaterThan(300_000);
    const before = pollsOf(one);
    one.agent.set(text('pushed'), 'get');
    expect((await push(addressOf(one))).status).toBe(204);
    await completed(taskId);
    expect(pollsOf(one)).toBe(before + 1);
    const { status, attempts } = await continuationOf(gateway, taskId);
    expect([status, attempts]).toEqual(['completed', row.attempts]); // resumed by a push, so it costs no attempt
  });

  it.each(['v1', 'v03'] as const)('so does the work of a published agent with a %s remote agent', async (card) => {
    const one = await remote({ card });
    const name = `ours-${card}`;
    await publish(gateway, { name, executor: { kind: 'remote', agentId: one.slug } });
    const configuration = { returnImmediately: true };
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x'), configuration }, { agent: name });
    await putOff(task.id);
    one.agent.set(text('pushed'), 'get');
    expect((await push(addressOf(one))).status).toBe(204);
    await completed(task.id);
  });

  it.each(['between two polls', 'during its last poll'])('wakes the follower %s', async (when) => {
    const following = await startTestGateway({ ...pushOnly, A2A_CONTINUATION_PRECLAIM_WAIT_MS: '600000' });
    try {
      const one = await remote({}, following);
      const isEarly = when !== 'between two polls';
      const pushed = async () => expect((await push(addressOf(one), {}, following)).status).toBe(204);
      const later: Behaviour = async (it) => {
        if (isEarly) await pushed();
        it.send(429, '', { 'retry-after': '300' });
      };
      one.agent.set(sequence(state('working'), later, text('pushed')), 'get');
      const { taskId } = await one.handed();
      await one.agent.until(() => pollsOf(one) >= 2, 'a poll that is to wait');
      if (!isEarly) await pushed();
      const { result } = await following.rpc('tools/call', { name: 'task_status', arguments: { taskId } });
      expect(result.content).toEqual([{ type: 'text', text: 'pushed' }]);
    } finally {
      await following.close();
    }
  });

  it('a push that arrives before the answer with the task is stored until the next poll', async () => {
    // The agent answers after the push, which may take longer than a call usually waits.
    const one = await remote({ timeoutMs: 5_000 });
    let stored: unknown[] = [];
    one.agent.set(async (call) => {
      expect((await push(addressOf(one))).status).toBe(204);
      stored = await gateway.sql('select org_id from remote_pushes');
      await never(call);
    });
    const { taskId } = await one.handed();
    expect(stored).toHaveLength(1);
    await putOff(taskId);
    expect(pollsOf(one)).toBeGreaterThan(0);
    expect(await remembered(taskId)).toEqual([]);
  });

  it('a push during the release of a task is not lost', async () => {
    const one = await remote();
    await publish(gateway, { name: 'ours-let-go', executor: { kind: 'remote', agentId: one.slug } });
    let isPushed = false;
    one.agent.set(async (poll) => {
      if (isPushed) return text('pushed')(poll);
      isPushed = (await push(addressOf(one))).status === 204; // after the poll began, so its answer is older
      await poll.pause(400);
      return state('working')(poll);
    }, 'get');
    const params = { message: userMessage('x'), configuration: { returnImmediately: true } };
    const { task } = await rpc(gateway, 'SendMessage', params, { agent: 'ours-let-go' });
    await completed(task.id);
    expect([pollsOf(one), await remembered(task.id)]).toEqual([2, []]);
  });

  it('a storm of pushes causes one claim at a time, and costs no attempts', async () => {
    const one = await remote();
    const { taskId } = await one.handed();
    const { attempts } = await putOff(taskId);
    const before = pollsOf(one);
    let [open, most] = [0, 0];
    one.agent.set(async (poll) => {
      most = Math.max(most, ++open);
      await poll.pause(50);
      open--;
      return state('working')(poll);
    }, 'get');
    for (let round = 0; round < 8; round++) {
      const answers = await Promise.all(Array.from({ length: 25 }, () => push(addressOf(one))));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([204]));
    }
    await eventually(
      () => continuationOf(gateway, taskId),
      ({ status }) => status === 'pending' && pollsOf(one) > before,
    );
    expect(most).toBe(1);
    expect(pollsOf(one) - before).toBeLessThan(40);
    expect((await continuationOf(gateway, taskId)).attempts).toBe(attempts);
    one.agent.set(text('at last'), 'get');
    expect((await push(addressOf(one))).status).toBe(204);
    await completed(taskId);
  });

  it('a push after the end changes nothing', async () => {
    const one = await remote();
    const { taskId } = await one.handed();
    await putOff(taskId);
    one.agent.set(text('pushed'), 'get');
    await push(addressOf(one));
    await completed(taskId);
    const [before, seen] = [await gateway.sql('select * from a2a_tasks where id = $1', [taskId]), pollsOf(one)];
    expect((await push(addressOf(one))).status).toBe(204);
    expect(await remembered(taskId)).toEqual([]);
    expect(await gateway.sql('select * from a2a_tasks where id = $1', [taskId])).toEqual(before);
    expect(pollsOf(one)).toBe(seen);
  });

  it('only the remote agent can push: a token is valid for its own task, and is not stored', async () => {
    const [one, other] = [await remote(), await remote()];
    const [{ taskId }, { taskId: otherId }] = [await one.handed(), await other.handed()];
    await Promise.all([putOff(taskId), putOff(otherId)]);
    const [token, otherToken] = [addressOf(one), addressOf(other)].map((path) => path.split('/').at(-1)!);
    const [{ org_id: orgId }] = await gateway.sql('select org_id from a2a_tasks where id = $1', [taskId]);
    const stranger = tokensOf(new Vault(randomBytes(32)), publicUrl, false);
    const mixed = Buffer.from(token!, 'base64url');
    Buffer.from(otherToken!, 'base64url').copy(mixed, 0, 0, 32); // the ids of one token with the MAC of the other
    for (const forged of [
      mixed.toString('base64url'),
      stranger.issue({ taskId, orgId }),
      `${token!.slice(0, -2)}${token!.at(-2) === 'A' ? 'B' : 'A'}${token!.at(-1)}`,
      `${token!.slice(0, -1)}${token!.endsWith('B') ? 'C' : 'B'}`,
      `${token!.startsWith('A') ? 'B' : 'A'}${token!.slice(1)}`,
      token!.slice(0, -1),
      taskId,
      'x',
    ]) {
      const { status, body } = await push(`/api/a2a/pushes/${forged}`);
      expect([forged, status, body.code]).toEqual([forged, 401, 'unauthenticated']);
    }
    // A token of an unknown task gets the same answer as one of an existing task.
    const own = gateway.gateway.get(PushTokens);
    expect((await push(`/api/a2a/pushes/${own.issue({ taskId: newId(), orgId })}`)).status).toBe(204);
    expect((await push(`/api/a2a/pushes/${own.issue({ taskId, orgId: newId() })}`)).status).toBe(204);
    const before = pollsOf(other);
    one.agent.set(text('pushed'), 'get');
    await push(addressOf(one));
    await completed(taskId);
    expect([(await continuationOf(gateway, otherId)).status, pollsOf(other)]).toEqual(['pending', before]);
    const tables = await gateway.sql(
      `select table_name as name from information_schema.tables where table_schema = 'public'`,
    );
    for (const { name } of tables)
      expect(await gateway.sql(`select from ${name} t where t::text like '%' || $1 || '%'`, [token])).toEqual([]);
    expect(gateway.log.join('\n')).not.toContain(token);
  });

  it('the content of a push is ignored: only a poll of the remote agent changes the task', async () => {
    const one = await remote();
    const { taskId } = await one.handed();
    await putOff(taskId);
    const lie = { task: { id: 'stub-task-1', status: { state: 'TASK_STATE_COMPLETED' } } };
    expect((await push(addressOf(one), lie)).status).toBe(204);
    await one.agent.until(() => pollsOf(one) > 1, 'a poll');
    await putOff(taskId);
    expect(await stateOf(taskId)).toBe('working');
    expect((await push(addressOf(one), 'no { json')).status).toBe(204);
    expect((await gateway.call('POST', addressOf(one), { any: 'thing' })).status).toBe(204); // with a credential, too
    expect((await push(addressOf(one), 'x'.repeat(1_048_577))).status).toBe(413);
  });

  it('a push without a running worker reaches the next worker', async () => {
    const door = await startTestGateway({ ...pushOnly, RIALTO_ROLE: 'api' });
    const worker = await startTestGateway(pushOnly, door);
    try {
      const one = await remote({}, door);
      const { taskId } = await one.handed();
      const status = async () => (await continuationOf(door, taskId)).status;
      await eventually(status, (found) => found === 'pending');
      await worker.close();
      one.agent.set(text('pushed'), 'get');
      expect((await push(addressOf(one), {}, door)).status).toBe(204);
      const next = await startTestGateway(pushOnly, door);
      await eventually(status, (found) => found === 'completed').finally(() => next.close());
    } finally {
      await door.close();
    }
  });

  it('an agent gets no push URL when its card declares no pushes', async () => {
    const one = await remote({ capabilities: { streaming: false } });
    await one.handed();
    expect(configurationOf(one)).toEqual({});
  });

  it.each([
    ['a call', -32_602, 2],
    ['a call', -32_003, 2],
    ['a call', 400, 2],
    ['a call', -32_603, 1],
    ['a published agent', -32_602, 2],
    ['a published agent', -32_603, 1],
  ])('after a refusal of the URL, and only then, %s is sent again without it (%d)', async (who, code, sends) => {
    const one = await remote();
    one.agent.set(
      sequence((call) => (code === 400 ? call.send(400, '') : call.error(code, 'not there')), text('without')),
    );
    if (who === 'a call') await one.call();
    else {
      const agent = `ours-refused${code}`;
      await publish(gateway, { name: agent, executor: { kind: 'remote', agentId: one.slug } });
      await rpc(gateway, 'SendMessage', { message: userMessage('x') }, { agent });
    }
    const sent = one.agent.requests.map(({ json }: any) => [
      json.params.message.messageId,
      json.params.configuration?.pushNotificationConfig !== undefined,
    ]);
    const [id] = sent[0]!;
    expect(sent).toEqual(
      [
        [id, true],
        [id, false],
      ].slice(0, sends),
    );
  });

  it('in production the URL must be https', () => {
    const vault = new Vault(randomBytes(32));
    const agent = { card: { capabilities: { pushNotifications: true } } } as never;
    const key = { taskId: newId(), orgId: newId() };
    const urlOf = (address: string | undefined, production: boolean) =>
      tokensOf(vault, address, production).urlFor(agent, key);
    expect(urlOf('http://inside:3000', true)).toBeUndefined();
    expect(urlOf(undefined, true)).toBeUndefined();
    expect(urlOf('http://inside:3000/', false)).toMatch(/^http:\/\/inside:3000\/api\/a2a\/pushes\/[\w-]{86}$/);
    expect(urlOf('https://gateway.example/', true)).toMatch(/^https:\/\/gateway\.example\/api\/a2a\/pushes\//);
    expect(tokensOf(vault, 'https://x', true).openToken(urlOf('https://x', true)!.split('/').at(-1)!)).toEqual(key);
  });

  it('outside production, the default URL is the address of the gateway', async () => {
    const plain = await startTestGateway(quick);
    try {
      const one = await remote({}, plain);
      await one.handed();
      expect(addressOf(one)).toMatch(new RegExp(`^${plain.url}/api/a2a/pushes/[\\w-]{86}$`));
    } finally {
      await plain.close();
    }
  });
});
