import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { Deadline } from '../../src/kernel/abort.js';
import type { Endpoint } from '../../src/a2a-client/transports/endpoint-choice.js';
import { SdkTransport, type SdkHop, type SdkLimits } from '../../src/a2a-client/transports/sdk.transport.js';
import { parseAllowList } from '../../src/platform/http/outbound/address.js';
import type { OutboundPolicy } from '../../src/platform/http/outbound/safe-fetch.js';
import { closeOpened, closing, stub } from '../support/clients/bridge.js';
import { client, failure } from '../support/clients/outbound.js';
import { startSdkGrpcAgent } from '../support/stubs/sdk-agents.js';
import * as does from '../support/stubs/stub-behaviours.js';
import type { Behaviour } from '../support/stubs/stub-call.js';
import * as hostile from '../support/stubs/stub-hostile.js';

afterEach(closeOpened);

const params = { message: { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] } };
const local = { allow: parseAllowList('127.0.0.0/8'), httpsOnly: false };

const transport = (limits: SdkLimits = {}, policy: OutboundPolicy = local) =>
  closing(new SdkTransport(client(), policy, limits));

function hop(endpoint: Endpoint, timeoutMs = 10_000): SdkHop {
  const headers = { headersFor: () => Promise.resolve({}), renew: () => false };
  return { endpoint, headers, deadline: new Deadline(timeoutMs), signals: [] };
}

const rpc = (url: string): Endpoint => ({ url, binding: 'JSONRPC', version: '1.0' });

async function drain(events: AsyncIterable<unknown>): Promise<number> {
  let count = 0;
  for await (const _ of events) count += 1;
  return count;
}

const tiny = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  result: { statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } },
});

describe('the limits of a stream', () => {
  it.each([
    [
      'events',
      { maxEvents: 100 },
      hostile.flood(`data: ${tiny}\n\n`),
      'remote_invalid_response',
      'remote_stream_limit',
    ],
    [
      'bytes of an event',
      { maxEventBytes: 1_000 },
      hostile.flood(`data: ${'x'.repeat(500)}\n`),
      'remote_invalid_response',
      'remote_stream_limit',
    ],
    [
      'bytes in all',
      { maxStreamBytes: 100_000 },
      hostile.flood(`data: ${tiny}\n\n`),
      'remote_invalid_response',
      undefined,
    ],
    ['silence', { idleMs: 200 }, does.stream([{ task: 'working' }], 'hang'), 'remote_timeout', 'idle'],
  ] as [string, SdkLimits, Behaviour, string, string | undefined][])(
    'abuse 26, F30: %s',
    async (_name, limits, behaviour, code, reason) => {
      const agent = await stub({ behaviour });
      const error = await failure(drain(transport(limits).stream(hop(rpc(agent.url)), params)));
      expect([error.code, error.data?.reason]).toEqual([code, reason]);
      await agent.idle();
    },
  );

  it('heartbeats count as activity', async () => {
    const beats = Array.from({ length: 5 }, () => ({ afterMs: 150, comment: 'beat' }));
    const agent = await stub({ behaviour: does.stream([{ task: 'working' }, ...beats, { status: 'completed' }]) });
    expect(await drain(transport({ idleMs: 500 }).stream(hop(rpc(agent.url)), params))).toBe(2);
  });

  it('the deadline ends an endless stream', async () => {
    const agent = await stub({ behaviour: does.stream([{ task: 'working' }], 'hang') });
    const error = await failure(drain(transport().stream(hop(rpc(agent.url), 400), params)));
    expect(error.code).toBe('remote_timeout');
    expect(await agent.closed()).toHaveLength(1);
  });
});

describe('reads', () => {
  it('lists tasks and follows one', async () => {
    const agent = await stub({ behaviour: does.never });
    const [sdk, at] = [transport(), hop(rpc(agent.url))];
    await sdk.send(at, params);
    expect(await sdk.listTasks(at, { pageSize: 10 })).toMatchObject({
      tasks: [{ id: 'stub-task-1' }],
      nextPageToken: '',
    });
    for await (const event of sdk.subscribe(at, 'stub-task-1')) {
      expect(event).toMatchObject({ task: { id: 'stub-task-1' } });
      break;
    }
    const older = hop({ url: agent.url, binding: 'JSONRPC', version: '0.3' });
    expect((await failure(sdk.listTasks(older, {}))).code).toBe('remote_error');
  });
});

describe('gRPC', () => {
  const at = (url: string) => hop({ url, binding: 'GRPC', version: '1.0' });
  const resolving = (...answers: string[]): OutboundPolicy => {
    let asked = 0;
    const next = () => answers[Math.min(asked++, answers.length - 1)]!;
    return { allow: parseAllowList(''), httpsOnly: true, resolve: async () => [{ address: next(), family: 4 }] };
  };

  it('AN-39 a name that resolves to a private address gets no connection, now or later', async () => {
    const agent = closing(await startSdkGrpcAgent());
    const [, port = ''] = agent.address.split(':');
    const name = `agent.example:${port}`;
    expect((await failure(transport({}, resolving('127.0.0.1')).send(at(name), params))).code).toBe('url_not_allowed');
    const rebound = resolving('8.8.8.8', '127.0.0.1');
    expect((await failure(transport({}, rebound).send(at(name), params))).code).toBe('url_not_allowed');
    expect(agent.executor.received).toHaveLength(0);
  });

  it('uses TLS unless the agent is an allow-listed loopback address', async () => {
    const agent = closing(await startSdkGrpcAgent());
    expect(await transport().send(at(agent.address), params)).toHaveProperty('task');
    const error = await failure(transport().send(at(`https://${agent.address}`), params));
    expect(error.code).toBe('remote_transport');
    expect(agent.executor.received).toHaveLength(1);
  });

  it.each(['grpc_proxy', 'https_proxy', 'http_proxy'])('X3.6 connects through no proxy that %s names', async (name) => {
    const asked: string[] = [];
    const proxy = createServer((socket) =>
      socket.on('data', (bytes) => asked.push(bytes.toString()) && socket.destroy()),
    );
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
    process.env[name] = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    try {
      const agent = closing(await startSdkGrpcAgent());
      expect(await transport().send(at(agent.address), params)).toHaveProperty('task');
      expect(asked).toEqual([]);
    } finally {
      delete process.env[name];
      proxy.close();
    }
  });

  it('has the same deadline and errors as the other bindings', async () => {
    const agent = closing(await startSdkGrpcAgent());
    const slow = { message: { ...params.message, metadata: { skillId: 'slow' } } };
    const late = hop({ url: agent.address, binding: 'GRPC', version: '1.0' }, 400);
    expect((await failure(transport().send(late, slow))).code).toBe('remote_timeout');
    const error = await failure(transport().getTask(at(agent.address), 'no-such-task'));
    expect([error.code, error.data?.remoteCode]).toEqual(['remote_error', -32001]);
    await agent.close();
    expect((await failure(transport().send(at(agent.address), params))).code).toBe('remote_transport');
  });
});
