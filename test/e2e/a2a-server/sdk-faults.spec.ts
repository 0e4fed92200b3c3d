import { once } from 'node:events';
import { createServer, get, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { A2AClient } from '../../../src/a2a-client/client.js';
import { Metrics } from '../../../src/platform/telemetry/metrics.js';
import { EventStream } from '../../../src/platform/http/streams/event-stream.js';
import { SseStreams } from '../../../src/platform/http/streams/sse-streams.js';
import { openStream, publish, rpc, rpcCall, rpcError, rpcStream, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { eventRows } from '../../support/gateway/event-rows.js';

const rest = '/a2a/agents/echo';
const v03 = { 'A2A-Version': '0.3' };

/*
 * Faults 1 to 17 of the official server of 1.3.0, from its review. Each is a test that Rialto passes, with callers
 * without an SDK.
 */
describe('a fault of the official server that Rialto does not have', () => {
  let gateway: TestGateway;
  let second: TestGateway;

  beforeAll(async () => {
    gateway = await startTestGateway();
    second = await startTestGateway({}, gateway);
    await publish(gateway, { extendedCard: true, defaultInputModes: ['text/*', 'application/json'] });
    await publish(gateway, { name: 'brief', executor: { kind: 'echo', delayMs: 40 } });
    await publish(gateway, { name: 'long', executor: { kind: 'echo', delayMs: 4_000, chunks: 40 } });
    await publish(gateway, { name: 'asks', executor: { kind: 'echo', ask: 'Which colour?' } });
  });
  afterAll(async () => {
    await second.close();
    await gateway.close();
  });

  const begin = async (agent: string, text = 'x'.repeat(80)): Promise<string> =>
    (
      await rpc(
        gateway,
        'SendMessage',
        { message: userMessage(text), configuration: { returnImmediately: true } },
        { agent },
      )
    ).task.id;
  const fields = ({ data = [] }: any): string[] =>
    data.flatMap((detail: any) => (detail.fieldViolations ?? []).map(({ field }: any) => field));
  const events = (id: string) =>
    gateway.sql<{ seq: number; terminal: boolean }>(
      `select seq, terminal from ${eventRows} where task_id = $1 order by seq`,
      [id],
    );

  it('1: a subscription on another replica continues to the end', async () => {
    const id = await begin('brief');
    const stream = await rpcStream(second, 'SubscribeToTask', { id }, { agent: 'brief' });
    const [first, ...later] = await stream.rest();
    if (first?.data.result) {
      expect(first.data.result.task.id).toBe(id);
      expect(later.at(-1)?.data.result.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
    } else {
      // The task ended before its subscription. The refusal is an event only when it took longer than a second.
      const refusal = first?.data.error ?? (await rpcError(second, 'SubscribeToTask', { id }, { agent: 'brief' }));
      expect(refusal.data[0].reason).toBe('UNSUPPORTED_OPERATION');
    }
    const long = await begin('long');
    const followed = await rpcStream(second, 'SubscribeToTask', { id: long }, { agent: 'long' });
    expect(Object.keys((await followed.next())!.data.result)).toEqual(['task']);
    expect(Object.keys((await followed.next())!.data.result)[0]).toMatch(/Update$/);
    await rpc(second, 'CancelTask', { id: long }, { agent: 'long' });
    expect((await followed.rest()).at(-1)!.data.result.statusUpdate.status.state).toBe('TASK_STATE_CANCELED');
  });

  it('2: a cancel on another replica stops the work', async () => {
    const id = await begin('long');
    await eventually(
      () => events(id),
      (all) => all.length > 3,
    );
    expect((await rpc(second, 'CancelTask', { id }, { agent: 'long' })).status.state).toBe('TASK_STATE_CANCELED');
    await eventually(
      () => gateway.sql('select lease_owner from a2a_tasks where id = $1', [id]),
      ([task]) => task.lease_owner === null,
    );
    const after = await events(id);
    expect(after.at(-1)!.terminal).toBe(true);
    await rpc(gateway, 'SendMessage', { message: userMessage('meanwhile') }, { agent: 'brief' });
    expect(await events(id)).toEqual(after);
  });

  it('3: of a completion and cancels on two replicas one wins, and no event is lost', async () => {
    const ids = await Promise.all(Array.from({ length: 12 }, () => begin('brief')));
    const asked = ids.flatMap((id) =>
      [gateway, second].map((at) => rpcCall(at, 'CancelTask', { id }, { agent: 'brief' })),
    );
    await Promise.all(asked);
    for (const id of ids) {
      const all = await eventually(
        () => events(id),
        (some) => some.at(-1)?.terminal === true,
      );
      expect(all.map(({ seq }) => seq)).toEqual(all.map((_, index) => index + 1));
      expect(all.filter(({ terminal }) => terminal)).toHaveLength(1);
    }
  });

  it.each([
    ['empty parts', { parts: [] }, ['message.parts']],
    ['no role', { role: undefined }, ['message.role']],
    ['the role of an agent', { role: 'ROLE_AGENT' }, ['message.role']],
    ['an unknown enum', { role: 'ROLE_KING' }, ['message.role']],
    ['parts of a wrong type', { parts: 'hello' }, ['message.parts']],
    ['a part of a wrong type', { parts: ['hello'] }, ['message.parts[0]']],
    ['no id', { messageId: undefined }, ['message.messageId']],
  ])('4: a message with %s is refused, and the field is named', async (_what, more, named) => {
    const message = { ...userMessage('x'), ...more };
    const error = await rpcError(gateway, 'SendMessage', { message });
    expect([error.code, fields(error)]).toEqual([-32602, named]);
    const { status, body } = await gateway.call('POST', `${rest}/message:send`, { message });
    expect([status, fields({ data: body.error.details })]).toEqual([400, named]);
  });

  it('5: a version with patch digits, or in the query, is accepted', async () => {
    const ask = (headers: Record<string, string>, query = '') =>
      rpcCall(gateway, 'SendMessage', { message: userMessage('x') }, { agent: `${rest}${query}`, headers });
    for (const answer of [await ask({ 'A2A-Version': '1.0.1' }), await ask({}, '?A2A-Version=1.0')])
      expect(answer.body.result.task.status.state).toBe('TASK_STATE_COMPLETED');
    expect((await ask({ 'A2A-Version': '2.0' })).body.error.code).toBe(-32009);
    expect((await ask({}, '?A2A-Version=2.0')).body.error.code).toBe(-32009);
    const get = await gateway.call('GET', `${rest}/tasks?A2A-Version=1.0.3`);
    expect(get.body).toHaveProperty('totalSize');
  });

  it('6: an invalid request is -32600, a notification gets no answer, and reasons are as specified', async () => {
    const post = (body: unknown) => gateway.call('POST', rest, body);
    for (const body of [
      [{ jsonrpc: '2.0', id: 1, method: 'GetTask' }],
      { jsonrpc: '1.0', id: 7, method: 'GetTask' },
      7,
    ])
      expect((await post(body)).body.error.code).toBe(-32600);
    expect((await post({ jsonrpc: '1.0', id: 7, method: 'GetTask' })).body.id).toBe(7);
    expect((await post('{')).body).toMatchObject({ id: null, error: { code: -32700 } });
    const silent = await post({ jsonrpc: '2.0', method: 'SendMessage', params: { message: userMessage('x') } });
    expect([silent.status, silent.body]).toEqual([204, '']);
    expect((await post({ jsonrpc: '2.0', method: 'Nonsense' })).body).toMatchObject({
      id: null,
      error: { code: -32601 },
    });
    const error = await rpcError(gateway, 'GetTask', {});
    expect(error.data.map((detail: any) => detail['@type'].split('.').at(-1))).not.toContain('ErrorInfo');
  });

  it('7: a negative historyLength is refused on every binding', async () => {
    const error = await rpcError(gateway, 'GetTask', { id: 'x', historyLength: -1 });
    expect([error.code, fields(error)]).toEqual([-32602, ['historyLength']]);
    expect((await gateway.call('GET', `${rest}/tasks?historyLength=-1`)).status).toBe(400);
    const older = await rpcError(gateway, 'tasks/get', { id: 'x', historyLength: -1 });
    expect(older.code).toBe(-32602);
  });

  it.each([
    'file:///etc/passwd',
    'http://169.254.169.254/latest',
    'http://[fe80::1]/x',
    'http://10.0.0.1/x',
    'nonsense',
  ])('8: push notifications to %s are refused', async (url) => {
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('paint') }, { agent: 'asks' });
    const config = { taskId: task.id, url };
    const error = await rpcError(gateway, 'CreateTaskPushNotificationConfig', config, { agent: 'asks' });
    expect(error.code).toBe(-32602);
    const inline = { message: userMessage('x'), configuration: { taskPushNotificationConfig: { url } } };
    expect((await rpcError(gateway, 'SendMessage', inline)).code).toBe(-32602);
    const listed = await rpc(gateway, 'ListTaskPushNotificationConfigs', { taskId: task.id }, { agent: 'asks' });
    expect(listed.configs).toEqual([]);
  });

  it('9: the extended card is refused without a credential', async () => {
    const none = await rpcCall(gateway, 'GetExtendedAgentCard', {}, { token: null });
    expect([none.status, none.body.result]).toEqual([401, undefined]);
    expect((await gateway.call('GET', `${rest}/extendedAgentCard`, undefined, null)).status).toBe(401);
    expect((await gateway.call('GET', `${rest}/v1/card`, undefined, null)).status).toBe(401);
    expect((await rpc(gateway, 'GetExtendedAgentCard', {})).name).toBe('echo');
  });

  it('10: statusTimestampAfter includes its own time, and pages are stable while tasks change', async () => {
    const dora = await gateway.tokenOf('default', 'dora');
    const options = { agent: 'asks', token: dora };
    const ids: string[] = [];
    for (let index = 0; index < 5; index++)
      ids.unshift((await rpc(gateway, 'SendMessage', { message: userMessage(`${index}`) }, options)).task.id);
    const list = (params: object) => rpc(gateway, 'ListTasks', params, options);
    const all = await list({});
    const { timestamp } = all.tasks[2].status;
    const since = await list({ statusTimestampAfter: timestamp });
    expect(since.tasks.map(({ id }: any) => id)).toEqual(ids.slice(0, 3));
    const first = await list({ pageSize: 2 });
    expect(first.tasks.map(({ id }: any) => id)).toEqual(ids.slice(0, 2));
    // The last task of the page moves to the front in between.
    await rpc(gateway, 'SendMessage', { message: userMessage('red', { taskId: ids[1] }) }, options);
    const next = await list({ pageSize: 2, pageToken: first.nextPageToken });
    expect(next.tasks.map(({ id }: any) => id)).toEqual(ids.slice(2, 4));
  });

  it('11: parts of a media type that the agent does not accept are refused', async () => {
    const ask = (mediaType: string) =>
      rpcCall(gateway, 'SendMessage', { message: userMessage('', { parts: [{ raw: 'aGk=', mediaType }] }) });
    expect((await ask('image/png')).body.error).toMatchObject({
      code: -32005,
      data: [{ reason: 'CONTENT_TYPE_NOT_SUPPORTED' }],
    });
    for (const mediaType of ['text/csv', 'application/json; charset=utf-8'])
      expect((await ask(mediaType)).body.result).toBeDefined();
  });

  it('12: null in a data part is kept', async () => {
    const message = userMessage('', { parts: [{ data: null }, { data: { a: null } }] });
    const { task } = await rpc(gateway, 'SendMessage', { message });
    expect(task.artifacts[0].parts).toEqual([{ data: null }, { data: { a: null } }]);
    const again = await gateway.call('GET', `${rest}/tasks/${task.id}`);
    expect(again.body.history[0].parts).toEqual([{ data: null }, { data: { a: null } }]);
  });

  it('13: a REST cancel keeps its metadata, and an unknown route answers JSON', async () => {
    const text =
      'forbid(principal, action == Action::"task_cancel", resource) ' +
      'when { context.input.hasTag("why") && context.input.getTag("why") == "whim" };';
    expect((await gateway.call('POST', '/api/policies', { name: 'no whims', text })).status).toBe(201);
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('paint') }, { agent: 'asks' });
    const path = `/a2a/agents/asks/tasks/${task.id}:cancel`;
    const forbidden = () => gateway.call('POST', path, { metadata: { why: 'whim' } });
    await eventually(forbidden, ({ status }) => status === 403);
    const canceled = await gateway.call('POST', path, { metadata: { why: 'late' } });
    expect(canceled.body.status.state).toBe('TASK_STATE_CANCELED');
    for (const unknown of ['/nothing', '/v1/nothing', '/tasks/x/y/z']) {
      const { status, headers, body } = await gateway.call('GET', `${rest}${unknown}`);
      expect([status, headers.get('content-type'), typeof body]).toEqual([404, 'application/json', 'object']);
    }
    expect((await gateway.call('PUT', `${rest}/tasks`)).status).toBe(405);
  });

  it('14: events of a stream are numbered, and a stream resumes after a number', async () => {
    const stream = await openStream(`${gateway.url}${rest}/message:stream`, {
      token: gateway.token,
      body: { message: userMessage('x') },
    });
    const frames = await stream.rest();
    expect(frames.map(({ id }) => id)).toEqual([1, 2, 3, 4]);
    const { id } = frames[0]!.data.task;
    const behind = await openStream(`${gateway.url}${rest}/tasks/${id}:subscribe`, {
      token: gateway.token,
      headers: { 'Last-Event-ID': '2' },
    });
    expect((await behind.rest()).map((frame) => frame.id)).toEqual([3, 4]);
  });

  it('16: v0.3 REST accepts both body forms, and creates push configurations', async () => {
    const plain = { messageId: 'm', kind: 'message', role: 'user', parts: [{ kind: 'text', text: 'hi' }] };
    const proto = { messageId: 'm', role: 'ROLE_USER', content: [{ text: 'hi' }] };
    for (const message of [plain, proto]) {
      const { status, body } = await gateway.call('POST', `${rest}/v1/message:send`, { message }, undefined, v03);
      expect([status, body.task.status.state]).toEqual([200, 'TASK_STATE_COMPLETED']);
    }
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('paint') }, { agent: 'asks' });
    const base = `/a2a/agents/asks/v1/tasks/${task.id}/pushNotificationConfigs`;
    const url = 'http://127.0.0.1:9/hook';
    for (const [id, body] of [
      [
        'a',
        { config: { name: `tasks/${task.id}/pushNotificationConfigs/a`, pushNotificationConfig: { id: 'a', url } } },
      ],
      ['b', { pushNotificationConfig: { id: 'b', url } }],
      ['c', { id: 'c', url }],
      ['d', { configId: 'd', config: { pushNotificationConfig: { url } } }],
    ] as const) {
      const made = await gateway.call('POST', base, body);
      expect([made.status, made.body.pushNotificationConfig]).toEqual([201, expect.objectContaining({ id, url })]);
    }
    expect((await gateway.call('GET', base)).body.configs).toHaveLength(4);
  });

  it('17: a key makes a second send harmless, callers are limited, and every door is measured', async () => {
    const [message, headers] = [userMessage('pay'), { 'Idempotency-Key': 'k-1' }];
    const [one, two] = [
      await rpc(gateway, 'SendMessage', { message }, { headers }),
      await rpc(second, 'SendMessage', { message }, { headers }),
    ];
    expect(two.task.id).toBe(one.task.id);
    const measured = await gateway.gateway.get(Metrics).http.get();
    expect(measured.values.map(({ labels }) => labels.route)).toContain('/a2a/agents/{name}');
    const limited = await startTestGateway({ RIALTO_RATE_LIMIT_PRINCIPAL: '2' });
    await publish(limited);
    const statuses: number[] = [];
    for (let index = 0; index < 15; index++) {
      const { status, headers: sent } = await rpcCall(limited, 'SendMessage', { message: userMessage('x') });
      if (status === 429) expect(Number(sent.get('retry-after'))).toBeGreaterThan(0);
      statuses.push(status);
    }
    await limited.close();
    expect([statuses[0], statuses.at(-1)]).toEqual([200, 429]);
  });
});

describe('a fault of the official server that Rialto does not have, in the streams themselves', () => {
  let server: Server;
  let streams: SseStreams;
  const written: (number | false)[] = [];
  const ctx = { org: { id: 'o', slug: 'o' }, principal: { kind: 'user', id: 'u' } } as never;

  beforeAll(async () => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance'] });
    streams = new SseStreams(new Metrics(), { onMissed: () => undefined } as never);
    server = createServer((request, response) => {
      const stream = new EventStream(response);
      streams.hold(ctx, stream);
      stream.writeHead();
      stream.write(': open\n\n');
      if (request.url !== '/flood') return;
      void (async () => {
        let count = 0;
        while (await stream.send(`data: ${'x'.repeat(65_536)}\n\n`)) written.push(++count);
        written.push(false);
      })();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterAll(() => {
    jest.useRealTimers();
    server.closeAllConnections();
    server.close();
  });
  /** Works also with fake timers. */
  const until = async (is: () => boolean) => {
    while (!is()) await new Promise((resolve) => setImmediate(resolve));
  };
  const open = async (path: string) => {
    const call = get({ port: (server.address() as AddressInfo).port, path });
    const [response] = (await once(call, 'response')) as [NodeJS.ReadableStream & { socket: Socket }];
    return response;
  };

  it('14: a silent stream sends a comment every 15 seconds', async () => {
    const response = await open('/quiet');
    let text = '';
    response.on('data', (chunk: Buffer) => (text += chunk.toString()));
    await until(() => text !== '');
    jest.advanceTimersByTime(14_000);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(text).toBe(': open\n\n');
    jest.advanceTimersByTime(2_000);
    await until(() => text.length > ': open\n\n'.length);
    expect(text).toBe(': open\n\n: keep-alive\n\n');
    response.socket.destroy();
  });

  it('14: a stream waits for a reader that never reads, then ends, and holds little data for it', async () => {
    const response = await open('/flood');
    response.pause();
    const settled = async (): Promise<number> => {
      let since = performance.now();
      for (let [before, same] = [-1, 0]; same < 20 || performance.now() - since < 200; before = written.length) {
        await new Promise((resolve) => setImmediate(resolve));
        same = written.length === before ? same + 1 : 0;
        if (same === 0) since = performance.now();
      }
      return written.length;
    };
    const stuck = await settled();
    expect(stuck).toBeLessThan(256); // 16 MiB, most of it in the buffers of the operating system
    jest.advanceTimersByTime(29_000);
    expect(await settled()).toBe(stuck);
    jest.advanceTimersByTime(2_000);
    await until(() => written.at(-1) === false);
  });
});

describe('a fault of the official client that Rialto does not have', () => {
  it('15: time, size and addresses in the answers of an agent are bounded', async () => {
    const server = createServer((request, response) => {
      if (request.url === '/slow/.well-known/agent-card.json') return;
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ name: 'x'.repeat(8_000_000) }));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const codeOf = (work: Promise<unknown>) =>
      work.then(
        () => 'none',
        (error: { code: string }) => error.code,
      );
    const allow = '127.0.0.0/8';
    expect(await codeOf(new A2AClient(`${url}/slow`, { allow }).getAgentCard({ timeoutMs: 300 }))).toMatch(/timeout/);
    expect(await codeOf(new A2AClient(`${url}/huge`, { allow }).getAgentCard())).not.toBe('none');
    expect(await codeOf(new A2AClient(url).getAgentCard())).toBe('url_not_allowed');
    expect(await codeOf(new A2AClient('http://169.254.169.254/', { allow }).getAgentCard())).toBe('url_not_allowed');
    server.closeAllConnections();
    server.close();
  });
});
