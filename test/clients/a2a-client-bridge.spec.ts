import { AgentHeaders } from '../../src/a2a-client/requests/agent-headers.js';
import { RemoteCredentials } from '../../src/a2a-client/requests/remote-credentials.js';
import { BridgeTransport } from '../../src/a2a-client/transports/bridge.transport.js';
import { waitOrCancel, type Watch } from '../../src/a2a-client/transports/remote-wait.js';
import type { Credential } from '../../src/registry/registry.types.js';
import { call, closeOpened, closing, fails, output, stub as anyStub } from '../support/clients/bridge.js';
import { client, http as httpServer } from '../support/clients/outbound.js';
import { startSdkAgentV03, startSdkAgentV1 } from '../support/stubs/sdk-agents.js';
import type { StubAgentOptions } from '../support/stubs/stub-agent.js';
import * as does from '../support/stubs/stub-behaviours.js';
import type { Behaviour } from '../support/stubs/stub-call.js';
import * as hostile from '../support/stubs/stub-hostile.js';

afterEach(closeOpened);

const stub = (options: StubAgentOptions = {}) => anyStub({ card: 'v03', ...options });

function headersFor(
  url: string,
  credential: Credential | undefined,
  credentials: RemoteCredentials,
  own = {},
): AgentHeaders {
  return new AgentHeaders({ id: 'agent-1', url }, own, () => credential, credentials);
}

describe('the one-call wire form', () => {
  it('RE-15, RE-18, RE-19, RE-20 one POST of message/send, the skill, one data part, the session twice', async () => {
    const agent = await stub();
    await call(agent, { args: { projectId: 'ü', deep: [1, null] }, skillId: 'deploy' });
    expect(agent.requests).toHaveLength(1);
    const { method, headers, json } = agent.requests[0]!;
    expect([method, headers['content-type'], headers.accept]).toEqual(['POST', 'application/json', 'application/json']);
    expect(headers['a2a-version']).toBeUndefined();
    const { params, ...envelope } = json as { params: { message: object } & Record<string, unknown> };
    expect(envelope).toMatchObject({ jsonrpc: '2.0', method: 'message/send' });
    expect(params.message).toMatchObject({ skill: { skillId: 'deploy' } });
    expect((params.message as { parts: unknown }).parts).toEqual([
      { kind: 'data', data: { projectId: 'ü', deep: [1, null] } },
    ]);
    expect([params.correlationId, params.taskId]).toEqual(['a2a-x-deploy-s', 'a2a-x-deploy-s']);
  });

  it('RE-15 (C3) v1.0: SendMessage, the version header, the skill in the metadata', async () => {
    const agent = await stub({ card: 'v1' });
    await call(agent, { skillId: 'deploy' });
    const { headers, json } = agent.requests[0]!;
    expect(headers['a2a-version']).toBe('1.0');
    expect(json).toMatchObject({
      method: 'SendMessage',
      params: { message: { parts: [{ data: { a: 1 } }], metadata: { skillId: 'deploy' } } },
    });
  });

  it('RE-17 ids are numbers, unique, near the clock', async () => {
    const agent = await stub();
    const transport = new BridgeTransport(client());
    await Promise.all(Array.from({ length: 20 }, () => call(agent, { transport })));
    const ids = agent.requests.map(({ json }) => (json as { id: number }).id);
    expect(ids.every(Number.isSafeInteger)).toBe(true);
    expect(new Set(ids).size).toBe(20);
    expect(Math.abs(ids[0]! - Date.now())).toBeLessThan(60_000);
  });

  it('RE-21 a single data artifact becomes the data, without loss', async () => {
    const value = { text: 'ünïcødé 🙂', none: null, big: 9_007_199_254_740_991, deep: { list: [[1], {}] } };
    expect(await output(await stub({ behaviour: does.data(value) }))).toEqual(value);
    expect(await output(await stub({ card: 'v1', behaviour: does.data(value) }))).toEqual(value);
  });

  it('RE-22 a single text artifact becomes the string', async () => {
    expect(await output(await stub({ behaviour: does.text('done') }))).toBe('done');
  });

  it('RE-23 several parts become the whole artifact, in order', async () => {
    const agent = await stub({ behaviour: does.multi([{ text: 'a' }, { data: { b: 2 } }, { text: 'c' }]) });
    const parts = [
      { kind: 'text', text: 'a' },
      { kind: 'data', data: { b: 2 } },
      { kind: 'text', text: 'c' },
    ];
    expect(await output(agent)).toMatchObject({ parts });
  });

  it('RE-24 a failed task is an error with the text of the remote agent', async () => {
    for (const card of ['v1', 'v03'] as const) {
      const error = await fails(await stub({ card, behaviour: does.failed('quota exceeded') }));
      expect([error.code, error.message]).toEqual(['remote_task_failed', 'quota exceeded']);
      expect(error.data).toMatchObject({ taskId: 'stub-task-1', state: 'failed' });
    }
  });

  it('RE-89 an error of the remote agent is forwarded with its code and text', async () => {
    const error = await fails(await stub({ behaviour: does.jsonrpcError(-32602, 'projectId is missing') }));
    expect(error.code).toBe('remote_error');
    expect(error.data).toMatchObject({ remoteCode: -32602, remoteMessage: 'projectId is missing' });
  });

  it('a task that asks back is returned as an answer at once', async () => {
    const agent = await stub({ behaviour: does.ask('Which one?') });
    expect(await output(agent)).toMatchObject({ state: 'input-required', message: 'Which one?' });
    expect(agent.requests).toHaveLength(1);
  });

  it('calls the agents of the official SDK, v1.0 and v0.3', async () => {
    for (const start of [startSdkAgentV1, startSdkAgentV03]) {
      const agent = closing(await start());
      expect(await output(agent, { skillId: 'echo', args: { n: 1 } })).toEqual({ received: { n: 1 }, skillId: 'echo' });
    }
  });
});

describe('a task that continues to work', () => {
  it.each(['v1', 'v03'] as const)('is polled until it settles (%s)', async (card) => {
    const agent = await stub({ card, behaviour: does.asyncTask(3, does.text('at last')) });
    expect(await output(agent)).toBe('at last');
    const polls = agent.requests.filter(({ operation }) => operation === 'get');
    expect(polls).toHaveLength(3);
    expect(polls.map(({ json }) => (json as { params: unknown }).params)).toEqual(
      polls.map(() => ({ id: 'stub-task-1' })),
    );
  });

  it('RE-25, RE-26, RE-27 ends at the deadline with the task, and sends a cancel to the remote agent', async () => {
    const agent = await stub({ behaviour: does.never });
    const error = await fails(agent, { timeoutMs: 2_000 });
    expect([error.code, error.data?.taskId]).toEqual(['remote_timeout', 'stub-task-1']);
    expect(await agent.waitForCancels()).toEqual(['stub-task-1']);
  });

  it('a caller that leaves: the call is canceled, and the remote agent receives a cancel', async () => {
    const agent = await stub({ card: 'v1', behaviour: does.never });
    const caller = new AbortController();
    const failed = fails(agent, { signal: caller.signal });
    await agent.waitForRequests(2);
    caller.abort();
    expect((await failed).code).toBe('canceled');
    expect(await agent.waitForCancels()).toEqual(['stub-task-1']);
  });

  it('an agent that does not answer the cancel delays no call', async () => {
    const agent = await stub({ behaviour: does.never });
    agent.set(hostile.hang, 'cancel');
    // A cancel has its own timeout of one second. This one never ends, so a call that waited for it would never end.
    const watch: Watch = (first, remote, limits) => {
      const cancel = (id: string) => remote.cancel(id).catch(() => new Promise(() => {}));
      return waitOrCancel(first, { ...remote, cancel }, limits);
    };
    expect((await fails(agent, { timeoutMs: 2_000, watch })).code).toBe('remote_timeout');
    expect(await agent.waitForCancels()).toEqual(['stub-task-1']);
  });

  it('a poll without an answer is repeated; three in a row are a failure that names the task', async () => {
    const agent = await stub({ behaviour: does.asyncTask(1, does.text('ok')) });
    const good: Behaviour = (poll) => poll.settle({ state: 'completed', artifacts: [[{ text: 'ok' }]] });
    agent.set(does.sequence(hostile.resetAtOnce, hostile.http(503), good), 'get');
    expect(await output(agent)).toBe('ok');
    agent.set(hostile.resetAtOnce, 'get');
    const error = await fails(agent);
    expect([error.code, error.data?.taskId]).toEqual(['remote_transport', 'stub-task-2']);
  });

  it('F29 an unknown state is not an end and is polled again; F32 the first end counts', async () => {
    const agent = await stub({ behaviour: does.state('pondering') });
    const settle =
      (state: string, text: string): Behaviour =>
      (poll) =>
        poll.settle({ state, artifacts: [[{ text }]] });
    agent.set(does.sequence(settle('pondering', ''), settle('completed', 'first'), settle('working', 'later')), 'get');
    expect(await output(agent)).toBe('first');
    expect(agent.requests.filter(({ operation }) => operation === 'get')).toHaveLength(2);
  });

  it('F29 an answer with another task does not count as a poll answer', async () => {
    const agent = await stub({ behaviour: does.never });
    agent.set(hostile.wrongEnvelope('task-of-another-request'), 'get');
    expect((await fails(agent)).code).toBe('remote_invalid_response');
  });
});

describe('the headers of a request', () => {
  const credentials = () => new RemoteCredentials(client());

  it('RE-16 are the bearer token, or the header of an API key', async () => {
    const agent = await stub();
    await call(agent, { headers: headersFor(agent.url, { type: 'bearer', token: 'secret-token' }, credentials()) });
    await call(agent, {
      headers: headersFor(agent.url, { type: 'apiKey', header: 'X-Api-Key', value: 'k-1' }, credentials()),
    });
    expect(agent.requests.map(({ headers }) => [headers.authorization, headers['x-api-key']])).toEqual([
      ['Bearer secret-token', undefined],
      [undefined, 'k-1'],
    ]);
  });

  it('abuse 18: a credential is sent only to the registered origin, for any card', async () => {
    const [registered, elsewhere] = [await stub(), await stub({ behaviour: does.asyncTask(1, does.text('ok')) })];
    const headers = headersFor(registered.url, { type: 'bearer', token: 'secret-token' }, credentials(), {
      'x-own': '1',
    });
    await call(elsewhere, { headers });
    expect(elsewhere.requests.length).toBe(2);
    for (const request of elsewhere.requests) {
      expect(request.headers.authorization).toBeUndefined();
      expect(request.headers['x-own']).toBe('1');
    }
  });

  it('abuse 17: the agent receives these headers and no others', async () => {
    const agent = await stub({ behaviour: does.echo });
    const headers = headersFor(agent.url, { type: 'bearer', token: 't-own' }, credentials(), { 'x-rialto-depth': '1' });
    const seen = (await output(agent, { headers })) as { headers: object };
    const expected = [
      'accept',
      'accept-encoding',
      'authorization',
      'connection',
      'content-length',
      'content-type',
      'host',
    ];
    expect(Object.keys(seen.headers).sort()).toEqual([...expected, 'user-agent', 'x-rialto-depth']);
  });

  it('gets an OAuth token once for all waiting calls, with Basic authentication, and caches it', async () => {
    const asked: { authorization?: string; body: string }[] = [];
    const server = await tokenServer(asked, () => ({
      access_token: `token-${asked.length}`,
      token_type: 'Bearer',
      expires_in: 300,
    }));
    const agent = await stub({ behaviour: does.bearer('token-1', does.text('in')) });
    const oauth = {
      type: 'oauth2',
      tokenUrl: server.url,
      clientId: 'me:x',
      clientSecret: 'p @+',
      scope: 'call',
    } as const;
    const shared = credentials();
    const calls = Array.from({ length: 5 }, () => output(agent, { headers: headersFor(agent.url, oauth, shared) }));
    expect(await Promise.all(calls)).toEqual(Array(5).fill('in'));
    expect(asked).toHaveLength(1);
    expect(asked[0]).toEqual({
      authorization: `Basic ${Buffer.from('me%3Ax:p+%40%2B').toString('base64')}`,
      body: 'grant_type=client_credentials&scope=call',
    });
  });

  it('drops an OAuth token on 401 and retries once with a new one', async () => {
    const asked: { body: string }[] = [];
    const server = await tokenServer(asked, () => ({
      access_token: `token-${asked.length}`,
      token_type: 'bearer',
      expires_in: 300,
    }));
    const agent = await stub({ behaviour: does.bearer('token-2', does.text('in')) });
    const oauth = { type: 'oauth2', tokenUrl: server.url, clientId: 'me', clientSecret: 'x' } as const;
    const shared = credentials();
    expect(await output(agent, { headers: headersFor(agent.url, oauth, shared) })).toBe('in');
    agent.set(does.bearer('none', does.text('in')));
    const error = await fails(agent, { headers: headersFor(agent.url, oauth, shared) });
    expect([error.code, error.data?.httpStatus, asked.length]).toEqual(['remote_transport', 401, 3]);
    expect(agent.requests).toHaveLength(4);
  });

  it('does not use an expiring token; reports a refusal of the token endpoint with its status only', async () => {
    const asked: { body: string }[] = [];
    const server = await tokenServer(asked, () => ({ access_token: 'short', token_type: 'Bearer', expires_in: 30 }));
    const agent = await stub();
    const oauth = { type: 'oauth2', tokenUrl: server.url, clientId: 'me', clientSecret: 'x' } as const;
    const shared = credentials();
    for (let index = 0; index < 2; index++) await call(agent, { headers: headersFor(agent.url, oauth, shared) });
    expect(asked).toHaveLength(2);
    const refusing = await httpServer((_request, response) => response.writeHead(404).end('client_secret x is wrong'));
    const error = await fails(agent, { headers: headersFor(agent.url, { ...oauth, tokenUrl: refusing.url }, shared) });
    expect([error.code, error.data]).toEqual(['remote_transport', { tokenStatus: 404 }]);
    expect(JSON.stringify([error.message, error.data])).not.toContain('wrong');
    expect(agent.requests).toHaveLength(2);
  });
});

describe('the url of a call', () => {
  it.each(['/_agent-native/a2a', '/a2a'])('AN-29, AN-30 falls back to %s on 404', async (rpcPath) => {
    const agent = await stub({ rpcPath, behaviour: does.asyncTask(1, does.text('found')) });
    expect(await output(agent, { endpoint: { url: agent.url, binding: 'JSONRPC', version: '0.3' } })).toBe('found');
  });

  it('AN-30 does not try another path after 500, nor after a 404 of a JSON-RPC server', async () => {
    const agent = await stub();
    agent.set(hostile.http(500));
    expect((await fails(agent)).data?.httpStatus).toBe(500);
    agent.set(hostile.http(404, { jsonrpc: '2.0', id: null, error: { code: -32602, message: 'unknown agent' } }));
    const error = await fails(agent);
    expect([error.data?.httpStatus, error.data?.remoteCode]).toEqual([404, -32602]);
    expect(agent.requests).toHaveLength(2);
  });

  it('AN-30 reports the failure of the first path when no path answers', async () => {
    const agent = await stub({ rpcPath: '/elsewhere' });
    const error = await fails(agent, { endpoint: { url: `${agent.url}/rpc`, binding: 'JSONRPC', version: '1.0' } });
    expect([error.code, error.data?.httpStatus]).toEqual(['remote_transport', 404]);
    expect(agent.requests.map(({ path }) => path)).toEqual(['/rpc', '/_agent-native/a2a', '/a2a']);
  });

  it.each(['http://169.254.169.254/latest', 'http://10.0.0.1/', 'file:///etc/passwd'])(
    'AN-39 never calls %s',
    async (url) => {
      const agent = await stub();
      expect((await fails(agent, { endpoint: { url, binding: 'JSONRPC', version: '1.0' } })).code).toBe(
        'url_not_allowed',
      );
    },
  );
});

async function tokenServer(asked: { authorization?: string; body: string }[], answer: () => object) {
  return httpServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += String(chunk)));
    request.on('end', () => {
      asked.push({ authorization: request.headers.authorization, body });
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(answer()));
    });
  });
}
