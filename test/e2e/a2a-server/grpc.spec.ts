import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type ClientHttp2Session } from 'node:http2';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SendMessageRequest } from '@a2a-js/sdk';
import { A2AService } from '@a2a-js/sdk/server/grpc';
import { status } from '@grpc/grpc-js';
import { GrpcServer } from '../../../src/a2a-server/grpc-server.js';
import { GrpcDoor } from '../../../src/a2a-server/grpc.door.js';
import { Metrics } from '../../../src/platform/telemetry/metrics.js';
import { publish, userMessage } from '../../support/clients/a2a.js';
import { createTestDatabase } from '../../support/gateway/database.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { GrpcCaller } from '../../support/clients/grpc-client.js';
import { startProcess } from '../../support/gateway/process.js';
import { withoutTimers } from '../../support/gateway/timers.js';

const absent = '01900000-0000-7000-8000-000000000000';

describe('the gRPC services', () => {
  let gateway: TestGateway;
  let grpc: GrpcCaller;

  beforeAll(async () => {
    gateway = await startTestGateway({ GRPC_PORT: '0', RIALTO_MAX_BODY_BYTES: '20000' });
    grpc = new GrpcCaller(gateway);
    await publish(gateway);
    await publish(gateway, { name: 'slow', executor: { kind: 'echo', delayMs: 20_000 } });
    await publish(gateway, { name: 'asks', executor: { kind: 'echo', ask: 'Which colour?' } });
    await publish(gateway, { name: 'hidden', a2a_enabled: false });
    await publish(gateway, { name: 'older', protocolVersions: ['0.3'] });
    await publish(gateway, { name: 'strict', extensions: [{ uri: 'urn:x:needed', required: true }] });
  });
  afterAll(async () => {
    grpc.close();
    await gateway.close();
  });

  const send = (text = 'hello', more: object = {}) => ({ message: userMessage(text), ...more });
  const to = (agent: string) => ({ metadata: { 'rialto-agent': agent } });
  const streams = async (): Promise<number> => (await gateway.gateway.get(Metrics).streams.get()).values[0]?.value ?? 0;
  const noStreams = () => eventually(streams, (count) => count === 0);
  /** Creates a task that waits for its caller, as its streams do. */
  const waiting = async (): Promise<{ id: string; tenant: string }> => {
    const { answer } = await grpc.call('sendMessage', send('paint', { tenant: 'asks' }));
    return { id: (answer as { payload: { value: { id: string } } }).payload.value.id, tenant: 'asks' };
  };

  it('are on the card with their actual port', async () => {
    const { grpcPort } = gateway.gateway;
    const { body } = await gateway.call('GET', '/a2a/agents/echo/.well-known/agent-card.json');
    expect(body.supportedInterfaces.filter((face: any) => face.protocolBinding === 'GRPC')).toEqual([
      { url: `127.0.0.1:${grpcPort}`, protocolBinding: 'GRPC', tenant: 'echo', protocolVersion: '1.0' },
    ]);
  });

  it('(K2) are on 0.3 cards only of the default agent, which a call without an agent reaches', async () => {
    const { grpcPort } = gateway.gateway;
    const cards = async () => {
      const paths = ['echo', 'older'].map((name) => `/a2a/agents/${name}/.well-known/agent-card.json`);
      const read = await Promise.all(paths.map((path) => gateway.call('GET', path)));
      return read.map(({ body }) =>
        body.additionalInterfaces.map((face: any) => `${face.transport} ${face.url}`).at(-1),
      );
    };
    const rest = (name: string) => expect.stringMatching(new RegExp(`^HTTP\\+JSON .*/a2a/agents/${name}$`));
    expect(await cards()).toEqual([rest('echo'), rest('older')]);
    await gateway.call('PATCH', '/api/orgs/default', { defaultAgent: 'older' });
    expect(await cards()).toEqual([rest('echo'), `GRPC 127.0.0.1:${grpcPort}`]);
    await gateway.call('PATCH', '/api/orgs/default', { defaultAgent: null });
    expect(await cards()).toEqual([rest('echo'), rest('older')]);
  });

  it('RI-03: find the agent by metadata, by tenant, or as the default one, and no other', async () => {
    const completed = { payload: { value: { status: { state: 3 } } } };
    for (const [request, more] of [
      [send(), to('echo')],
      [send(), to('echo@default')],
      [send('x', { tenant: 'echo' }), {}],
      [send('x', { tenant: 'nobody' }), to('echo')],
    ] as const)
      expect((await grpc.call('sendMessage', request, more)).answer).toMatchObject(completed);
    for (const [request, more] of [
      [send(), {}],
      [send(), to('nobody')],
      [send(), to('hidden')],
      [send('x', { tenant: 'hidden' }), {}],
      [send(), to('echo@globex')],
    ] as const)
      expect(await grpc.refused('sendMessage', request, more)).toMatchObject({ code: status.NOT_FOUND });
    await gateway.call('PATCH', '/api/orgs/default', { defaultAgent: 'echo' });
    expect((await grpc.call('sendMessage', send())).answer).toMatchObject(completed);
    await gateway.call('PATCH', '/api/orgs/default', { defaultAgent: null });
  });

  it('require a credential before they read the request', async () => {
    for (const [token, metadata] of [
      [null, {}],
      ['rlt_wrong', {}],
      [null, { authorization: `Bearer ${gateway.token}, Bearer ${gateway.token}` }],
    ] as const) {
      const more = { token, metadata: { ...metadata, 'rialto-agent': 'echo' } as Record<string, string> };
      expect(await grpc.refused('sendMessage', { message: {} }, more)).toMatchObject({
        code: status.UNAUTHENTICATED,
        info: { reason: 'UNAUTHENTICATED' },
      });
    }
    const mallory = await gateway.tokenOf('globex', 'mallory', 'admin');
    const { answer } = await grpc.call('sendMessage', send(), to('echo'));
    const { id } = (answer as any).payload.value;
    const theirs = await grpc.refused('getTask', { id }, { ...to('echo@default'), token: mallory });
    expect(theirs).toMatchObject({ code: status.NOT_FOUND, info: { reason: 'TASK_NOT_FOUND' } });
  });

  it('refuse the same requests as the other bindings, and name the field', async () => {
    const empty = await grpc.refused('sendMessage', { message: { messageId: 'm', role: 'ROLE_USER' } }, to('echo'));
    expect(empty).toMatchObject({ code: status.INVALID_ARGUMENT, types: ['BadRequest', 'RequestInfo'] });
    expect(empty.raw.toString('latin1')).toContain('message.parts');
    const agent = await grpc.refused('sendMessage', { message: userMessage('x', { role: 'ROLE_AGENT' }) }, to('echo'));
    expect(agent.raw.toString('latin1')).toContain('message.role');
    const missing = await grpc.refused('getTask', { id: absent }, to('echo'));
    expect(missing).toMatchObject({ code: 5, info: { reason: 'TASK_NOT_FOUND', domain: 'a2a-protocol.org' } });
    const broken = await grpc.raw(A2AService.getTask.path, Buffer.from([0x12, 0xff]), to('echo'));
    expect(broken).toMatchObject({ code: status.INVALID_ARGUMENT });
    expect(await grpc.raw('/lf.a2a.v1.A2AService/Nothing', Buffer.alloc(0))).toMatchObject({
      code: status.UNIMPLEMENTED,
    });
  });

  it('read metadata as headers: version, extensions, request id, idempotency key, timeout', async () => {
    const metadata = (more: Record<string, string>, agent = 'echo') => ({
      metadata: { 'rialto-agent': agent, ...more },
    });
    for (const version of ['1.0', '1.0.1'])
      await grpc.call('sendMessage', send(), metadata({ 'a2a-version': version }));
    const refusal = (more: Record<string, string>, agent?: string) =>
      grpc.refused('sendMessage', send(), metadata(more, agent));
    for (const refused of [await refusal({ 'a2a-version': '2.0' }), await refusal({}, 'older')])
      expect(refused).toMatchObject({ code: 9, info: { reason: 'VERSION_NOT_SUPPORTED' } });
    expect(await refusal({}, 'strict')).toMatchObject({ code: 9, info: { reason: 'EXTENSION_SUPPORT_REQUIRED' } });
    const extended = { 'a2a-extensions': 'urn:x:other, urn:x:needed', 'x-request-id': 'my-1' };
    const { headers } = await grpc.call('sendMessage', send(), metadata(extended, 'strict'));
    expect(headers).toMatchObject({ 'a2a-extensions': 'urn:x:needed', 'x-request-id': 'my-1' });
    expect(await refusal({ 'x-request-id': 'my-2' }, 'nobody')).toMatchObject({ requestId: 'my-2' });
    const [key, request] = [{ 'idempotency-key': 'k-1' }, send('once')];
    const ids = await Promise.all(
      [1, 2].map(async () => ((await grpc.call('sendMessage', request, metadata(key))).answer as any).payload.value.id),
    );
    expect(ids[0]).toBe(ids[1]);
    expect(await grpc.refused('sendMessage', send('other'), metadata(key))).toMatchObject({ code: 6 });
    const waited = await grpc.call('sendMessage', send(), metadata({ 'x-a2a-timeout': '1' }, 'slow'));
    expect((waited.answer as any).payload.value.status.state).toBe(2);
    expect(await refusal({ 'x-a2a-timeout': '0' })).toMatchObject({ code: 3 });
  });

  it('accept at most the size of an HTTP body', async () => {
    const large = await grpc.refused('sendMessage', send('x'.repeat(20_001)), to('echo'));
    expect(large.code).toBe(status.RESOURCE_EXHAUSTED);
    await grpc.call('sendMessage', send('x'.repeat(19_000)), to('echo'));
  });

  it('resume after an event, and end a stream when its caller cancels it or its deadline passes', async () => {
    const request = await waiting();
    const { id } = request;
    const first = grpc.open('subscribeToTask', request);
    expect(await first.next()).toMatchObject({ task: { id } });
    const behind = grpc.open('subscribeToTask', request, { metadata: { 'last-event-id': '1' } });
    expect(await behind.next()).toMatchObject({ statusUpdate: { taskId: id } });
    const late = grpc.open('subscribeToTask', request, { options: { deadline: Date.now() + 6_000 } });
    expect(await late.next()).toBeDefined();
    expect(await streams()).toBe(3);
    first.call.cancel();
    behind.call.cancel();
    expect(await late.ended).toMatchObject({ code: status.DEADLINE_EXCEEDED });
    await noStreams();
    const given = { ...to('slow'), options: { deadline: Date.now() + 300 } };
    expect(await grpc.refused('sendMessage', send(), given)).toMatchObject({ code: status.DEADLINE_EXCEEDED });
    await grpc.call('cancelTask', request);
    const ended = grpc.open('subscribeToTask', request);
    expect(await ended.ended).toMatchObject({ code: 9, info: { reason: 'UNSUPPORTED_OPERATION' } });
  });

  it('count streams together with those of the other doors, and end them with their credential', async () => {
    const carol = await gateway.tokenOf('default', 'carol', 'admin');
    const made = await gateway.call('POST', '/api/keys', { name: 'grpc', role: 'admin' });
    const request = await waiting();
    const open = (token: string) => grpc.open('subscribeToTask', request, { token });
    const many = Array.from({ length: 50 }, () => open(carol));
    for (const one of many) expect(await one.next()).toHaveProperty('task');
    expect(await open(carol).ended).toMatchObject({ code: status.RESOURCE_EXHAUSTED });
    const other = open(made.body.key);
    expect(await other.next()).toHaveProperty('task');
    expect((await gateway.call('DELETE', `/api/keys/${made.body.id}`)).status).toBeLessThan(300);
    while (await other.next());
    expect(await other.ended).toMatchObject({ code: status.UNAVAILABLE });
    for (const one of many) one.call.cancel();
    await noStreams();
  });

  it('end a call that does not end its request: at its headers without a credential, later with one', async () => {
    const door = gateway.gateway.get(GrpcDoor);
    const session = connect(`http://127.0.0.1:${gateway.gateway.grpcPort}`);
    const end = async (path: string, token?: string, request: object = send()) => {
      const stream = openRaw(session, path, request, token, false).on('error', () => undefined);
      const closed = once(stream, 'close');
      const [headers] = await once(stream, 'response');
      stream.resume();
      await closed;
      return [headers['grpc-status'], stream.rstCode, headers['grpc-status-details-bin'] !== undefined];
    };
    for (const path of [A2AService.getTask.path, A2AService.sendStreamingMessage.path])
      for (const token of [undefined, 'rlt_wrong']) expect(await end(path, token)).toEqual(['16', 0, true]);
    door.requestTimeoutMs = 200;
    for (const path of [A2AService.getTask.path, A2AService.sendStreamingMessage.path])
      expect(await end(path, gateway.token)).toEqual(['4', 0, true]);
    const waited = await grpc.call('sendMessage', send(), {
      metadata: { 'rialto-agent': 'slow', 'x-a2a-timeout': '1' },
    });
    expect((waited.answer as any).payload.value.status.state).toBe(2);
    door.requestTimeoutMs = 30_000;
    expect(await end(A2AService.getTask.path, gateway.token, send('x'.repeat(20_001)))).toEqual(['8', 0, false]);
    session.destroy();
    const route = '"route":"/lf.a2a.v1.A2AService/GetTask","status"';
    for (const code of [4, 16]) expect(gateway.log.join('')).toContain(`${route}:${code},`);
  });

  it('have the same limit of connections as the HTTP server', () => {
    const { server } = gateway.gateway.get(GrpcServer) as unknown as { server: { http2Servers: Map<Server, unknown> } };
    expect([...server.http2Servers.keys()].map(({ maxConnections }) => maxConnections)).toEqual([10_000]);
  });

  it('release a stream when its reader reads nothing and leaves', async () => {
    await publish(gateway, { name: 'chatty', executor: { kind: 'echo', chunks: 1_000 } });
    const big = send('x'.repeat(15_000), { tenant: 'chatty' });
    const session = connect(`http://127.0.0.1:${gateway.gateway.grpcPort}`, { settings: { initialWindowSize: 100 } });
    const stream = openRaw(session, A2AService.sendStreamingMessage.path, big, gateway.token);
    await once(stream, 'response');
    expect(await streams()).toBe(1);
    session.destroy();
    await noStreams();
  });
});

describe('the gRPC server', () => {
  it('has its address in the ready line, and refuses to start on a used port', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const database = await createTestDatabase('grpc');
    const dataDir = mkdtempSync(join(tmpdir(), 'rialto-grpc-'));
    const env = { NODE_ENV: 'test', DATABASE_URL: database.url, RIALTO_DATA_DIR: dataDir };
    const refused = startProcess({ ...env, GRPC_PORT: String(port) });
    const { code, stdout, stderr } = await refused.ended;
    taken.close();
    expect([code, stdout, stderr]).toEqual([
      1,
      '',
      [`rialto: GRPC_PORT: ${port} is in use; choose another, 0 takes a free one`],
    ]);
    const running = startProcess({ ...env, GRPC_PORT: '0' });
    await running.ready;
    running.child.kill('SIGTERM');
    const ended = await running.ended;
    expect([ended.code, ended.stdout]).toEqual([0, expect.stringMatching(/^ {2}gRPC {5}127\.0\.0\.1:\d{4,5}$/m)]);
    await database.drop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it('is not started by a worker, nor without a port', async () => {
    const worker = await startTestGateway({ GRPC_PORT: '0', RIALTO_ROLE: 'worker' });
    expect(worker.gateway.grpcPort).toBeUndefined();
    await worker.close();
    const plain = await startTestGateway();
    expect(plain.gateway.grpcPort).toBeUndefined();
    await plain.close();
  });

  it('accepts loopback without a token when configured, but no call through a proxy', async () => {
    const gateway = await startTestGateway({
      GRPC_PORT: '0',
      RIALTO_DEV_ANONYMOUS: 'true',
      RIALTO_A2A_PROFILE: '1.0.0',
    });
    await publish(gateway);
    const grpc = new GrpcCaller(gateway);
    const request = { tenant: 'echo', message: userMessage('hi') };
    await grpc.call('sendMessage', request, { token: null });
    const proxied = { token: null, metadata: { 'x-forwarded-for': '10.0.0.1' } };
    expect(await grpc.refused('sendMessage', request, proxied)).toMatchObject({ code: status.UNAUTHENTICATED });
    const older = { metadata: { 'a2a-version': '7.0' } };
    expect(await grpc.refused('sendMessage', request, older)).toMatchObject({ code: status.UNIMPLEMENTED });
    grpc.close();
    await gateway.close();
  });

  it('ends streams with UNAVAILABLE at a stop, after the state of the tasks, and does not delay the stop', async () => {
    const gateway = await startTestGateway({ GRPC_PORT: '0' });
    await publish(gateway, { name: 'asks', executor: { kind: 'echo', ask: 'Which colour?' } });
    await publish(gateway, { name: 'post', executor: { kind: 'mailbox' } });
    const grpc = new GrpcCaller(gateway);
    const { answer } = await grpc.call('sendMessage', { tenant: 'asks', message: userMessage('paint') });
    const stream = grpc.open('subscribeToTask', { tenant: 'asks', id: (answer as any).payload.value.id });
    await stream.next();
    const waiting = grpc.call('sendMessage', { tenant: 'post', message: userMessage('zzz') });
    await eventually(
      () => gateway.sql(`select from a2a_tasks where agent_name = 'post'`),
      (rows) => rows.length === 1,
    );
    await withoutTimers(4_000, async () => {
      const closed = gateway.close();
      while (await stream.next());
      expect(await stream.ended).toMatchObject({ code: status.UNAVAILABLE });
      expect((await waiting).answer).toMatchObject({ payload: { value: { metadata: { partial: true } } } });
      await closed;
    });
    grpc.close();
  });
});

/** Opens an HTTP/2 call that reads nothing until it is resumed. */
function openRaw(session: ClientHttp2Session, path: string, request: object, token?: string, isWhole = true) {
  const message = A2AService.sendMessage.requestSerialize(SendMessageRequest.fromJSON(request));
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  message.copy(frame, 5);
  const headers = { ':method': 'POST', ':path': path, te: 'trailers', 'content-type': 'application/grpc' };
  const stream = session.request({ ...headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) });
  stream.pause();
  if (isWhole) stream.end(frame);
  else stream.write(frame);
  return stream;
}
