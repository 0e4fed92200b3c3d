import { jwtVerify } from 'jose';
import { A2AClient, A2AClientError, callAgent, type StreamResponse } from '../../src/a2a-client/client.js';
import { SafeFetch } from '../../src/platform/http/outbound/safe-fetch.js';
import { closeOpened, closing, stub } from '../support/clients/bridge.js';
import { all, clientOf, dialects, failure, fast } from '../support/clients/rialto-client.js';
import { startSdkAgentV03, startSdkAgentV1, startSdkGrpcAgent } from '../support/stubs/sdk-agents.js';
import type { StubAgent } from '../support/stubs/stub-agent.js';
import * as does from '../support/stubs/stub-behaviours.js';
import type { Behaviour } from '../support/stubs/stub-call.js';
import * as hostile from '../support/stubs/stub-hostile.js';

afterEach(closeOpened);

const secret = 'a secret of at least thirty-two bytes';
const operations = (agent: StubAgent) => agent.requests.map(({ operation }) => operation);
const params = (agent: StubAgent, index = 0) =>
  (agent.requests[index]!.json as { params: Record<string, unknown> }).params;

describe('A2AClient', () => {
  it.each(dialects)('AN-25 getAgentCard, send, stream, getTask, cancelTask with a bearer key: %s', async (dialect) => {
    const agent = await stub({
      card: dialect.startsWith('v1') ? 'v1' : 'v03',
      speaks: [dialect],
      behaviour: does.text('hello'),
    });
    const client = clientOf(agent, { apiKey: 'key-1' });
    expect(await client.getAgentCard()).toMatchObject({ name: 'Stub Agent', raw: { name: 'Stub Agent' } });
    const reply = await client.send('hi', { contextId: 'c-1', data: { n: 1 }, metadata: { m: 1 }, skillId: 'work' });
    expect(reply).toMatchObject({
      task: { status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ parts: [{ text: 'hello' }] }] },
    });
    const events = await all(client.stream('hi'));
    expect(events.map((event) => Object.keys(event)[0])).toEqual(['task', 'artifactUpdate', 'statusUpdate']);
    expect(events[1]).toMatchObject({ artifactUpdate: { artifact: { parts: [{ text: 'hello' }] } } });
    expect([reply, ...events].map(({ status }) => status.state)).toEqual([
      'completed',
      'working',
      'working',
      'completed',
    ]);
    expect([reply, ...events].flatMap((one) => Object.keys(one))).not.toContain('status');
    expect(await client.getTask('stub-task-1')).toMatchObject({
      id: 'stub-task-1',
      status: { state: 'TASK_STATE_COMPLETED' },
    });
    agent.set(does.never);
    const { task } = (await client.send('go', { async: true })) as { task: { id: string } };
    expect(await client.cancelTask(task.id)).toMatchObject({ status: { state: 'TASK_STATE_CANCELED' } });
    expect(new Set(agent.requests.map(({ headers }) => headers.authorization))).toEqual(new Set(['Bearer key-1']));
    expect(new Set(agent.requests.map((request) => request.dialect))).toEqual(new Set([dialect]));
  });

  it.each([
    ['v1.0', startSdkAgentV1],
    ['v0.3', startSdkAgentV03],
    ['gRPC', startSdkGrpcAgent],
  ] as const)('AN-25, AN-28 calls an agent of the official SDK: %s', async (_name, start) => {
    const agent = closing(await start());
    const client = clientOf(agent);
    expect(await client.sendAndWait('hi', { pollMs: 10, data: { n: 1 }, skillId: 'echo' })).toMatchObject({
      task: { artifacts: [{ parts: [{ data: { received: { n: 1 }, skillId: 'echo' } }] }] },
    });
    const last = (await all(client.stream('again'))).at(-1);
    expect(last).toMatchObject({ statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } });
    const slow = (await client.send('work', { skillId: 'slow', async: true })) as { task: { id: string } };
    expect(await client.cancelTask(slow.task.id)).toMatchObject({ status: { state: 'TASK_STATE_CANCELED' } });
    expect((await failure(client.getTask('no-such-task'))).remoteCode).toBe(-32001);
  });

  it('AN-25 reads the card of an old peer, and its answers without kinds', async () => {
    const agent = await stub({ card: 'old', capabilities: {} });
    agent.set((call) =>
      call.result({
        id: 't-1',
        status: { state: 'completed', message: { role: 'agent', parts: [{ type: 'text', text: 'old words' }] } },
      }),
    );
    expect(await callAgent(agent.url, 'hi', fast)).toBe('old words');
  });

  it('AN-28 polls until the task settles', async () => {
    const agent = await stub({ behaviour: does.asyncTask(3, does.text('at last')) });
    expect(await clientOf(agent).sendAndWait('hi', { pollMs: 10 })).toMatchObject({
      task: { status: { state: 'TASK_STATE_COMPLETED' } },
    });
    expect(operations(agent)).toEqual(['send', 'get', 'get', 'get']);
  });

  it.each([
    ['a lost connection', hostile.resetAtOnce],
    ['429', (call) => call.send(429, 'busy', { 'retry-after': '0' })],
    ['502', (call) => call.send(502, 'bad gateway')],
  ] as [string, Behaviour][])(
    '(N3) continues to poll after %s, more often than it repeats a read',
    async (_name, broken) => {
      const agent = await stub({ behaviour: does.never });
      const polls = Array.from({ length: 4 }, () => broken) as [Behaviour, ...Behaviour[]];
      agent.set(
        does.sequence(...polls, (call) => call.settle({ state: 'completed', artifacts: [[{ text: 'there' }]] })),
        'get',
      );
      expect(await callAgent(agent.url, 'hi', { ...fast, timeoutMs: 20_000 })).toBe('there');
      expect(operations(agent).filter((operation) => operation === 'send')).toHaveLength(1);
    },
  );

  it('(N3) ends at the deadline, with the task, when no poll is answered', async () => {
    const agent = await stub({ behaviour: does.never });
    agent.set(hostile.resetAtOnce, 'get');
    const error = await failure(clientOf(agent).sendAndWait('hi', { pollMs: 20, timeoutMs: 2_500 }));
    expect([error.code, error.taskId]).toEqual(['a2a_timeout', 'stub-task-1']);
  });

  it.each([0, 999, 300_001, Number.NaN])(
    'RI-51 refuses a wait of %p ms before it sends anything',
    async (timeoutMs) => {
      const agent = await stub({ behaviour: does.never });
      const failures = [
        failure(clientOf(agent).sendAndWait('hi', { timeoutMs })),
        failure(clientOf(agent).sendAndWait('hi', { timeoutMs, taskId: 't' })),
        failure(callAgent(agent.url, 'hi', { ...fast, timeoutMs })),
      ];
      for (const error of await Promise.all(failures))
        expect([error.code, error.message]).toEqual([
          'invalid_params',
          expect.stringContaining('from 1000 to 300000 ms'),
        ]);
      expect([agent.requests, agent.cardRequests]).toEqual([[], []]);
    },
  );

  it('RI-51 waits for the shortest time that is allowed', async () => {
    const agent = await stub({ behaviour: does.never });
    const error = await failure(clientOf(agent).sendAndWait('hi', { pollMs: 20, timeoutMs: 1_000 }));
    expect([error.code, error.taskId]).toEqual(['a2a_timeout', 'stub-task-1']);
  });

  it('AN-34 a task that asks back is settled; the answer goes to the same task', async () => {
    const agent = await stub({ behaviour: does.ask('Which one?', does.text('that one')) });
    const client = clientOf(agent);
    const asked = (await client.sendAndWait('hi', { pollMs: 10 })) as {
      task: { id: string; status: { state: string } };
    };
    expect(asked.task.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    expect(await client.send('the blue one', { taskId: asked.task.id })).toMatchObject({
      task: { artifacts: [{ parts: [{ text: 'that one' }] }] },
    });
  });

  it('a message without content is refused before a request is sent', async () => {
    const agent = await stub();
    const client = clientOf(agent);
    for (const work of [client.send(''), client.sendAndWait(''), all(client.stream(''))]) {
      expect((await failure(work)).code).toBe('invalid_params');
    }
    expect(agent.requests).toHaveLength(0);
    expect(() => new A2AClient('nonsense')).toThrow(A2AClientError);
  });

  it('(N5) sends as the user, for any spelling of the role and the parts, and never as another sender', async () => {
    const agent = await stub({ card: 'v03', behaviour: does.text('hello') });
    const older = { role: 'user', parts: [{ type: 'text', text: 'Show signups' }] } as never;
    await clientOf(agent).send(older);
    expect(params(agent).message).toMatchObject({ role: 'user', parts: [{ kind: 'text', text: 'Show signups' }] });
    for (const role of ['agent', 'ROLE_AGENT', 'system', ''])
      expect((await failure(clientOf(agent).send({ role, parts: [{ text: 'x' }] } as never))).code).toBe(
        'invalid_params',
      );
    expect(agent.requests).toHaveLength(1);
  });

  it.each<[string, unknown]>([
    ['an empty key', ''],
    ['a number', 7],
    ['null', null],
    ['a user without a secret', { userEmail: 'bob@acme.example' }],
    ['a secret without a user', { secret }],
  ])('(N5, N6) does not become anonymous because of %s', async (_name, options) => {
    expect(() => new A2AClient('https://agent.example', options as never)).toThrow(
      expect.objectContaining({ code: 'invalid_params' }),
    );
    const agent = await stub();
    if (options === null || typeof options !== 'object') return;
    expect((await failure(callAgent(agent.url, 'hi', { ...fast, ...options }))).code).toBe('invalid_params');
    expect(agent.requests).toHaveLength(0);
  });

  it('a consumer that leaves a stream ends its connection', async () => {
    const agent = await stub({ behaviour: does.stream([{ task: 'working' }], 'hang') });
    for await (const event of clientOf(agent).stream('hi')) {
      expect(event).toHaveProperty('task');
      break;
    }
    expect(await agent.closed()).toHaveLength(1);
  });

  it('a stream that breaks fails after the events that arrived', async () => {
    const agent = await stub({
      behaviour: does.stream(
        [{ task: 'working' }, { status: 'working' }, { afterMs: 200, comment: 'still here' }],
        'reset',
      ),
    });
    const seen: StreamResponse[] = [];
    const error = await failure(
      (async () => {
        for await (const event of clientOf(agent).stream('hi')) seen.push(event);
      })(),
    );
    expect([error.code, seen.length]).toEqual(['remote_transport', 2]);
  });
});

describe('callAgent', () => {
  it('AN-26 returns the text of the artifact, or of the message', async () => {
    const agent = await stub({ behaviour: does.text('forty-two') });
    expect(await callAgent(agent.url, 'hi', { ...fast, apiKey: 'k' })).toBe('forty-two');
    agent.set(does.message([{ text: 'hello' }]));
    expect(await callAgent(agent.url, 'hi', fast)).toBe('hello');
    expect(agent.requests[0]!.headers.authorization).toBe('Bearer k');
  });

  it('AN-27 sends asynchronously and polls; async: false is one blocking POST', async () => {
    const agent = await stub({ card: 'v03', speaks: ['v03-jsonrpc'], behaviour: does.asyncTask(1, does.text('done')) });
    expect(await callAgent(agent.url, 'hi', fast)).toBe('done');
    expect(operations(agent)).toEqual(['send', 'get']);
    expect(params(agent)).toMatchObject({ async: true, configuration: { blocking: false } });
    agent.set(does.text('at once'));
    expect(await callAgent(agent.url, 'hi', { ...fast, async: false })).toBe('at once');
    expect(params(agent, 2)).toMatchObject({ async: false, configuration: { blocking: true } });
    expect(agent.requests).toHaveLength(3);
  });

  it('AN-27 for a v1.0 agent the flag is returnImmediately', async () => {
    const agent = await stub({ behaviour: does.asyncTask(1, does.text('done')) });
    await callAgent(agent.url, 'hi', fast);
    expect(params(agent).configuration).toEqual({ returnImmediately: true });
    expect(params(agent)).not.toHaveProperty('async');
  });

  it.each(['/_agent-native/a2a', '/a2a'])('AN-29, AN-30 finds a peer without a card at %s', async (rpcPath) => {
    const agent = await stub({
      card: 'old',
      rpcPath,
      cardPath: '/nowhere',
      behaviour: does.asyncTask(1, does.text('found')),
    });
    expect(await callAgent(agent.url, 'hi', fast)).toBe('found');
  });

  it('AN-30 a 500 at the url of the card is the answer: the next path is not tried', async () => {
    const agent = await stub({ behaviour: hostile.http(500) });
    expect((await failure(callAgent(agent.url, 'hi', fast))).httpStatus).toBe(500);
    expect(agent.requests).toHaveLength(1);
    const moved = await stub({ card: 'old', rpcPath: '/a2a', behaviour: does.text('found') });
    moved.card.url = `${moved.url}/gone`;
    expect(await callAgent(moved.url, 'hi', fast)).toBe('found');
    const posts = moved.requests.filter(({ method }) => method === 'POST');
    expect(posts.map(({ path }) => path)).toEqual(['/gone', '/_agent-native/a2a', '/a2a']);
  });

  it('AN-31 a slow card is abandoned after a quarter of the deadline, 3 s at most', async () => {
    const agent = await stub({ card: 'old', rpcPath: '/a2a', behaviour: does.text('found') });
    agent.set(hostile.hang, 'card');
    const requests = jest.spyOn(SafeFetch.prototype, 'request');
    expect(await callAgent(agent.url, 'hi', { ...fast, timeoutMs: 6_000 })).toBe('found');
    const startedAt = performance.now();
    expect(await callAgent(agent.url, 'hi', fast)).toBe('found');
    expect(performance.now() - startedAt).toBeGreaterThan(2_900);
    const cards = requests.mock.calls.filter(([{ url }]) => url === agent.cardUrl);
    requests.mockRestore();
    const most = [1_500, 3_000];
    expect(cards.map(([{ deadlineMs }], index) => deadlineMs <= most[index]!)).toEqual([true, true]);
  });

  it('AN-32, AN-33 with key and subject a send is tried three times, a poll always; 400 once', async () => {
    const agent = await stub({ card: 'v03', speaks: ['v03-jsonrpc'], behaviour: does.text('x') });
    const busy = hostile.http(503);
    agent.set(does.sequence(busy, busy, does.asyncTask(1, does.text('done'))));
    const signed = { ...fast, secret, userEmail: 'bob@acme.example', idempotencyKey: 'once' };
    expect(await callAgent(agent.url, 'hi', signed)).toBe('done');
    expect(operations(agent)).toEqual(['send', 'send', 'send', 'get']);
    expect(params(agent).idempotencyKey).toBe('once');
    expect(agent.requests[0]!.headers['idempotency-key']).toBe('once');
    agent.set(does.asyncTask(9, does.text('x')));
    agent.set(does.sequence(busy, hostile.http(429, '', { 'retry-after': '0' }), does.text('done')), 'get');
    expect(await callAgent(agent.url, 'hi', fast)).toBe('done');
    const before = agent.requests.length;
    agent.set(hostile.http(400));
    expect((await failure(callAgent(agent.url, 'hi', signed))).httpStatus).toBe(400);
    expect(agent.requests.length - before).toBe(1);
  });

  it.each([
    ['without a key', { secret, userEmail: 'bob@acme.example' }],
    ['without a subject', { apiKey: 'k', idempotencyKey: 'once' }],
    ['when it blocks', { secret, userEmail: 'bob@acme.example', idempotencyKey: 'once', async: false }],
  ])('AN-33 %s a send is one POST, even on 503', async (_name, options) => {
    const agent = await stub({ behaviour: hostile.http(503) });
    expect((await failure(callAgent(agent.url, 'hi', { ...fast, ...options }))).httpStatus).toBe(503);
    expect(agent.requests).toHaveLength(1);
  });

  it('AN-35 the timeout names the task; a call with its id only polls', async () => {
    const agent = await stub({ behaviour: does.never });
    const error = await failure(callAgent(agent.url, 'hi', { ...fast, timeoutMs: 2_000 }));
    expect([error.code, error.taskId]).toEqual(['a2a_timeout', 'stub-task-1']);
    agent.requests.length = 0;
    agent.set(does.text('resumed'), 'get');
    expect(await callAgent(agent.url, 'hi', { ...fast, taskId: error.taskId })).toBe('resumed');
    expect(new Set(operations(agent))).toEqual(new Set(['get']));
  });

  it.each([
    ['a2a_task_failed', does.failed('no quota'), 'no quota'],
    ['a2a_task_canceled', does.canceled('stopped'), 'stopped'],
    ['a2a_task_rejected', does.rejected('not mine'), 'not mine'],
    ['empty_agent_response', does.artifacts(), 'without any text'],
    ['a2a_response_too_large', hostile.huge(6 * 1_048_576), 'not A2A'],
    ['a2a_response_too_large', hostile.huge(128 * 1_048_576, { declareLength: true }), ''],
    ['a2a_response_too_large', hostile.gzipBomb(64 * 1_048_576), ''],
  ] as [string, Behaviour, string][])('AN-36, abuse 24, 25: %s', async (code, behaviour, words) => {
    const agent = await stub({ behaviour });
    const error = await failure(callAgent(agent.url, 'hi', fast));
    expect(error.code).toBe(code);
    expect(error.message).toContain(words);
  });

  it('AN-37 cuts a long text and keeps its end', async () => {
    const long = `${'a'.repeat(50_000)}${'b'.repeat(50_000)}`;
    const agent = await stub({ behaviour: does.text(long) });
    const text = await callAgent(agent.url, 'hi', fast);
    expect(text.length).toBeLessThanOrEqual(32_768);
    expect(text.endsWith('b'.repeat(8_192))).toBe(true);
  });
});

describe('proof of identity', () => {
  const tokenOf = async (agent: StubAgent, index = 0) => {
    const [, token = ''] = agent.requests[index]!.headers.authorization!.split(' ');
    return jwtVerify(token, new TextEncoder().encode(secret), {
      algorithms: ['HS256'],
      issuer: 'rialto',
      audience: 'rialto',
    });
  };

  it('AN-38, AN-99 signs with the secret: subject, org, issuer, audience, 15 minutes', async () => {
    const agent = await stub({ behaviour: does.text('ok') });
    await callAgent(agent.url, 'hi', { ...fast, secret, userEmail: 'bob@acme.example', orgDomain: 'acme' });
    const { payload, protectedHeader } = await tokenOf(agent);
    expect(payload).toMatchObject({ sub: 'bob@acme.example', org_domain: 'acme' });
    expect(payload.exp! - payload.iat!).toBe(900);
    expect(protectedHeader.alg).toBe('HS256');
  });

  it.each([401, 403])(
    'AN-38 tries the token when the key is refused with %i, and remembers which one was accepted',
    async (status) => {
      const agent = await stub();
      const refuseKey: Behaviour = (call) =>
        call.request.headers.authorization === 'Bearer stale' ? call.send(status, '') : does.text('in')(call);
      agent.set(refuseKey);
      const client = clientOf(agent, { apiKey: 'stale', secret, userEmail: 'bob@acme.example' });
      for (let index = 0; index < 2; index++) await client.send('hi');
      expect(agent.requests).toHaveLength(3);
      expect((await tokenOf(agent, 2)).payload.sub).toBe('bob@acme.example');
      agent.set(hostile.http(status));
      const error = await failure(client.send('hi'));
      expect([error.code, error.httpStatus]).toEqual(['unauthenticated', status]);
    },
  );

  it('abuse 18: the proof is sent only to the origin of the client', async () => {
    const [agent, elsewhere] = [await stub(), await stub({ behaviour: does.text('ok') })];
    agent.card.supportedInterfaces = elsewhere.card.supportedInterfaces;
    expect(await callAgent(agent.url, 'hi', { ...fast, apiKey: 'key-1' })).toBe('ok');
    expect(elsewhere.requests[0]!.headers.authorization).toBeUndefined();
  });
});
