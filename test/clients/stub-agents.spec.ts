import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { rawRequest, type RawOptions } from '../support/clients/raw-http.js';
import { startStubAgent, type StubAgent, type StubAgentOptions } from '../support/stubs/stub-agent.js';
import * as be from '../support/stubs/stub-behaviours.js';
import * as hostile from '../support/stubs/stub-hostile.js';
import type { Wire } from '../support/stubs/stub-wire.js';

interface Result {
  id: string;
  status: { state: string; message: { parts: { text: string }[] } };
  artifacts: { parts: { data: unknown }[] }[];
  task: Result;
}

/**
 * Tests the scriptable agent with plain node:http. test/clients/sdk-agents.spec.ts tests its correct behaviour with the
 * official client.
 */
describe('stub agent', () => {
  let agent: StubAgent;

  async function start(options: StubAgentOptions = {}): Promise<StubAgent> {
    agent = await startStubAgent({ card: 'v03', ...options });
    return agent;
  }

  function rpc(method: string, params: unknown, options: RawOptions = {}) {
    const headers = { 'content-type': 'application/json', ...options.headers };
    return rawRequest(agent.url, { ...options, headers, body: { jsonrpc: '2.0', id: 7, method, params } });
  }

  const message = (more: Wire = {}) => ({
    message: { kind: 'message', role: 'user', messageId: 'm1', parts: [{ kind: 'text', text: 'hi' }], ...more },
  });
  const send = (options?: RawOptions) => rpc('message/send', message(), options);
  async function sendResult(more?: Wire): Promise<Result> {
    return resultOf(await rpc('message/send', message(more)));
  }
  const resultOf = (answer: { text: string }) => (JSON.parse(answer.text) as { result: Result }).result;

  afterEach(() => agent.close());

  describe('requests', () => {
    it('captures method, headers, raw body and JSON, with card requests in a separate list', async () => {
      await start();
      await rawRequest(agent.cardUrl);
      await send({ headers: { authorization: 'Bearer t' } });
      const [request] = await agent.waitForRequests(1);
      expect(request).toMatchObject({ method: 'POST', path: '/', operation: 'send', dialect: 'v03-jsonrpc' });
      expect(request!.headers.authorization).toBe('Bearer t');
      expect(JSON.parse(request!.rawBody)).toEqual(request!.json);
      expect(agent.cardRequests).toHaveLength(1);
    });

    it('reports that a client left, and only then', async () => {
      await start();
      await send();
      agent.set(hostile.hang);
      const left = send({ leaveWhen: agent.waitForRequests(2) });
      const [aborted] = await agent.closed();
      await left;
      expect(aborted).toBe(agent.requests[1]);
      expect(agent.requests[0]!.aborted).toBe(false);
      await agent.until(() => agent.connections === 0, 'no connection');
      expect(agent.activeRequests).toBe(0);
    });

    it('counts requests in progress', async () => {
      await start({ behaviour: hostile.hang });
      const leave = agent.waitForRequests(3);
      const all = [1, 2, 3].map(() => send({ leaveWhen: leave }));
      await leave;
      expect(agent.peakActiveRequests).toBe(3);
      await Promise.all(all);
      await agent.idle();
    });

    it('goes down and comes back on the same port with the same card', async () => {
      await start({ name: 'Phoenix' });
      const { url } = agent;
      agent.card.version = '2.0.0';
      await agent.down();
      expect((await send()).error?.code).toBe('ECONNREFUSED');
      await agent.up();
      expect(agent.url).toBe(url);
      expect(JSON.parse((await rawRequest(agent.cardUrl)).text)).toMatchObject({ name: 'Phoenix', version: '2.0.0' });
    });

    it('drops waiting clients when it goes down, and does not count that as an abort', async () => {
      await start({ behaviour: hostile.hang });
      const waiting = send();
      await agent.waitForRequests(1);
      await agent.down();
      expect((await waiting).error).toBeDefined();
      expect(agent.requests[0]!.aborted).toBe(false);
    });

    it('answers JSON-RPC only on its path, and only in its dialects', async () => {
      await start({ rpcPath: '/a2a', speaks: ['v03-jsonrpc'] });
      expect((await send()).status).toBe(404);
      const body = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: message() };
      const other = await rawRequest(`${agent.url}/a2a`, { body });
      expect(JSON.parse(other.text)).toMatchObject({ error: { code: -32601 } });
      expect(agent.card.url).toBe(`${agent.url}/a2a`);
    });

    it('refuses v1.0 without the version header', async () => {
      await start({ card: 'v1' });
      expect(JSON.parse((await rpc('SendMessage', message())).text)).toMatchObject({ error: { code: -32009 } });
      const answer = await rpc('SendMessage', message(), { headers: { 'a2a-version': '1.0' } });
      expect(resultOf(answer).task.status.state).toBe('TASK_STATE_COMPLETED');
    });
  });

  describe('card', () => {
    it.each([
      ['v1', { supportedInterfaces: [{ protocolBinding: 'JSONRPC', protocolVersion: '1.0' }, {}] }],
      ['v03', { protocolVersion: '0.3.0', preferredTransport: 'JSONRPC', additionalInterfaces: [{}] }],
      ['hybrid', { protocolVersion: '0.3.0', supportedInterfaces: [{}, {}, {}, {}] }],
      ['old', { name: 'Stub Agent' }],
    ] as const)('%s', async (card, expected) => {
      await start({ card, costPerTask: 3, skills: [{ id: 'deploy', inputSchema: { type: 'object' } }] });
      const answer = await rawRequest(agent.cardUrl);
      const document = JSON.parse(answer.text);
      expect(document).toMatchObject(expected);
      expect(document.skills[0].inputSchema).toEqual({ type: 'object' });
      expect(document.metadata.costPerTask).toBe(3);
      const other = card === 'old' ? 'agent-card.json' : 'agent.json';
      expect((await rawRequest(`${agent.url}/.well-known/${other}`)).status).toBe(404);
    });

    it('has an ETag that follows its content', async () => {
      await start();
      const headers = { 'if-none-match': (await rawRequest(agent.cardUrl)).headers.etag! };
      expect((await rawRequest(agent.cardUrl, { headers })).status).toBe(304);
      delete agent.card.name;
      expect((await rawRequest(agent.cardUrl, { headers })).status).toBe(200);
    });

    it('is scripted like other operations: 500, HTML, slow, a chain of redirects', async () => {
      await start();
      agent.set(be.sequence(hostile.http(500), hostile.html(), be.slow(1, be.serveCard)), 'card');
      expect((await rawRequest(agent.cardUrl)).status).toBe(500);
      expect((await rawRequest(agent.cardUrl)).headers['content-type']).toBe('text/html');
      expect((await rawRequest(agent.cardUrl)).status).toBe(200);
      agent.set(hostile.redirectChain(2, be.serveCard), 'card');
      const first = await rawRequest(agent.cardUrl);
      expect(first).toMatchObject({ status: 302, headers: { location: '/hop/1' } });
      expect((await rawRequest(`${agent.url}/hop/1`)).headers.location).toBe('/hop/2');
      expect((await rawRequest(`${agent.url}/hop/2`)).status).toBe(200);
    });
  });

  describe('answers', () => {
    it('a failed, rejected, canceled or invented state with its text', async () => {
      await start({ behaviour: be.failed('out of fuel') });
      const failed = await sendResult();
      expect(failed.status).toMatchObject({ state: 'failed', message: { parts: [{ text: 'out of fuel' }] } });
      agent.set(be.sequence(be.rejected(), be.canceled(), be.state('pondering')));
      const states = [await sendResult(), await sendResult(), await sendResult()].map((task) => task.status.state);
      expect(states).toEqual(['rejected', 'canceled', 'pondering']);
    });

    it('async: the n-th poll has the result', async () => {
      await start({ behaviour: be.asyncTask(3, be.data({ done: 1 })) });
      const task = await sendResult();
      expect(task.status.state).toBe('working');
      const states = [];
      for (let poll = 0; poll < 4; poll++) states.push(resultOf(await rpc('tasks/get', { id: task.id })).status.state);
      expect(states).toEqual(['working', 'working', 'completed', 'completed']);
    });

    it('polls can be scripted separately, also with states that go back', async () => {
      await start({ behaviour: be.never });
      const { id } = await sendResult();
      agent.set(be.sequence(be.state('completed'), be.state('working'), hostile.http(404)), 'get');
      expect(resultOf(await rpc('tasks/get', { id })).status.state).toBe('completed');
      expect(resultOf(await rpc('tasks/get', { id })).status.state).toBe('working');
      expect((await rpc('tasks/get', { id })).status).toBe(404);
    });

    it('asks, and asks again, with one task', async () => {
      await start({ behaviour: be.ask('Which?', be.ask('Sure?', be.text('done'))) });
      const { id: taskId, status } = await sendResult();
      expect(status).toMatchObject({ state: 'input-required', message: { parts: [{ text: 'Which?' }] } });
      expect((await sendResult({ taskId })).status.message.parts[0]!.text).toBe('Sure?');
      expect(await sendResult({ taskId })).toMatchObject({ id: taskId, status: { state: 'completed' } });
      expect(JSON.parse((await rpc('message/send', message({ taskId }))).text).error.code).toBe(-32004);
    });

    it('cancels: a known task once, an unknown one not at all, and records both', async () => {
      await start({ behaviour: be.never });
      const { id } = await sendResult();
      expect(resultOf(await rpc('tasks/cancel', { id })).status.state).toBe('canceled');
      expect(JSON.parse((await rpc('tasks/cancel', { id })).text).error.code).toBe(-32002);
      expect(JSON.parse((await rpc('tasks/cancel', { id: 'x' })).text).error.code).toBe(-32001);
      expect(await agent.waitForCancels(3)).toEqual([id, id, 'x']);
    });

    it('errors of the protocol, statuses with headers, a demanded token, an echo', async () => {
      await start({ behaviour: be.jsonrpcError(-32602, 'no branch', { field: 'branch' }) });
      const error = { code: -32602, message: 'no branch', data: { field: 'branch' } };
      expect(JSON.parse((await send()).text)).toEqual({ jsonrpc: '2.0', id: 7, error });
      agent.set(hostile.http(429, '', { 'retry-after': '2' }));
      expect(await send()).toMatchObject({ status: 429, headers: { 'retry-after': '2' } });
      agent.set(be.bearer('t', be.echo));
      expect((await send()).status).toBe(401);
      const echoed = resultOf(await send({ headers: { authorization: 'Bearer t' } })).artifacts[0]!.parts[0]!.data;
      expect(echoed).toMatchObject({
        method: 'POST',
        headers: { authorization: 'Bearer t' },
        body: { method: 'message/send' },
      });
    });

    it('streams events with comments and ids; a cancel ends the stream', async () => {
      const steps = [{ task: 'working' }, { comment: 'beat' }, { artifact: 'a', parts: [{ text: 'x' }], id: '2' }];
      await start({ behaviour: be.stream(steps, 'hang') });
      const open = rpc('message/stream', message());
      await agent.waitForRequests(1);
      await agent.until(() => agent.tasks.size === 1, 'a task');
      await rpc('tasks/cancel', { id: [...agent.tasks.keys()][0] });
      const { text, headers } = await open;
      expect(headers['content-type']).toBe('text/event-stream');
      expect(text).toContain(': beat\n\n');
      expect(text).toContain('id: 2\ndata: ');
      expect(text).toMatch(/"state":"canceled".*"final":true/);
    });
  });

  describe('hostile', () => {
    it.each([
      ['reset at once', hostile.resetAtOnce, 'ECONNRESET'],
      ['reset in the body', hostile.resetMidBody, 'ECONNRESET'],
      ['half close', hostile.halfClose, 'ECONNRESET'],
      ['reset in a stream', be.stream([{ task: 'working' }], 'reset'), 'ECONNRESET'],
    ])('%s', async (_name, behaviour, code) => {
      await start({ behaviour });
      const answer = await rpc('message/stream', message());
      expect(answer.error?.code).toBe(code);
      expect(agent.requests[0]!.aborted).toBe(false);
    });

    it('html, an empty object, raw text, a redirect', async () => {
      await start();
      agent.set(be.sequence(hostile.html(), hostile.emptyObject, hostile.raw('x'), hostile.redirect(307, 'http://h/')));
      expect((await send()).text).toContain('<h1>');
      expect((await send()).text).toBe('{}');
      expect((await send()).text).toBe('x');
      expect(await send()).toMatchObject({ status: 307, headers: { location: 'http://h/' } });
    });

    it('drips endlessly', async () => {
      await start({ behaviour: hostile.drip(1, 1) });
      const answer = await send({ leaveAfterBytes: 5 });
      expect(answer.text.trim()).toBe('');
      await agent.closed();
    });

    it('is huge but valid', async () => {
      await start({ behaviour: hostile.huge(300_000, { declareLength: true }) });
      const answer = await send();
      expect(answer.body).toHaveLength(Number(answer.headers['content-length']));
      expect(answer.body.length).toBeGreaterThan(300_000);
      expect(resultOf(answer).status.state).toBe('completed');
      agent.set(hostile.huge(1e12));
      await send({ leaveAfterBytes: 1_000_000 });
      await agent.closed();
      await agent.idle();
    });

    it('is a decompression bomb', async () => {
      await start({ behaviour: hostile.gzipBomb(20_000_000) });
      const answer = await send({ headers: { 'accept-encoding': 'identity' } });
      expect(answer.headers['content-encoding']).toBe('gzip');
      expect(answer.body.length).toBeLessThan(100_000);
      expect(gunzipSync(answer.body).length).toBeGreaterThan(20_000_000);
      agent.set(hostile.gzipBomb(1_000_000, 'br'));
      expect(brotliDecompressSync((await send()).body).length).toBeGreaterThan(1_000_000);
    });

    it('floods a stream', async () => {
      await start({ behaviour: hostile.flood('data: {}\n\n') });
      await rpc('message/stream', message(), { leaveAfterBytes: 100_000 });
      await agent.closed();
      agent.set(hostile.flood('data', 3));
      expect((await rpc('message/stream', message())).text).toBe('datadatadata');
    });

    it('sends too many headers', async () => {
      await start({ behaviour: hostile.manyHeaders(1_000, 90) });
      expect((await send()).error?.code).toBe('HPE_HEADER_OVERFLOW');
      expect((await send({ maxHeaderSize: 200_000 })).status).toBe(200);
    });

    it.each(hostile.wrongEnvelopeKinds)('wrong envelope: %s', async (kind) => {
      await start({ behaviour: be.sequence(hostile.wrongEnvelope(kind), be.text('ok')) });
      const [spoilt, good] = [await send(), await send()];
      expect(spoilt.status).toBe(200);
      const neutral = (text: string) => text.replaceAll(/stub-task-\d+|\d{4}-\d\d-\d\dT[\d:.]+Z/g, '');
      expect(neutral(spoilt.text)).not.toBe(neutral(good.text));
    });
  });
});
