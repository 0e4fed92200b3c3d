import { clientKinds, connectMcp, errorOf } from '../../support/clients/mcp-clients.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { canceled, data, failed, jsonrpcError, rejected } from '../../support/stubs/stub-behaviours.js';
import type { Behaviour } from '../../support/stubs/stub-call.js';
import * as hostile from '../../support/stubs/stub-hostile.js';

const timeoutMs = 400;
const codes = { timeout: -32201, transport: -32202, invalid: -32203, failed: -32204 };
const names: Record<number, string> = {
  [-32201]: 'RemoteA2ATimeoutError',
  [-32202]: 'RemoteA2ATransportError',
  [-32203]: 'RemoteA2AInvalidResponseError',
  [-32204]: 'RemoteA2ATaskFailedError',
};
const MiB = 1_048_576;

type Row = [string, Behaviour, number, Record<string, unknown>?];

const statuses: Row[] = [400, 401, 403, 404, 410, 429, 500, 502, 503].map((status) => [
  `RE-28 F31 HTTP ${status}`,
  hostile.http(status, { error: 'no' }, status === 429 ? { 'retry-after': '1' } : {}),
  codes.transport,
  { httpStatus: status },
]);

const bodies: Row[] = [
  ['RE-24 a failed task', failed('the build is broken'), codes.failed, { state: 'failed' }],
  ['RE-24 a rejected task', rejected('not today'), codes.failed, { state: 'rejected' }],
  ['RE-24 a canceled task', canceled('stopped'), codes.failed, { state: 'canceled' }],
  [
    'RE-89 a JSON-RPC error',
    jsonrpcError(-32602, 'branch is unknown', { field: 'branch' }),
    codes.failed,
    {
      remoteCode: -32602,
      remoteMessage: 'branch is unknown',
      remoteData: { field: 'branch' },
    },
  ],
  ['abuse 25 a huge answer', hostile.huge(64 * MiB), codes.invalid],
  ['abuse 25 a huge answer with its length', hostile.huge(64 * MiB, { declareLength: true }), codes.invalid],
  ['abuse 25 an endless answer', hostile.flood('x'.repeat(65_536), Infinity, 'application/json'), codes.invalid],
  ['abuse 24 a gzip bomb', hostile.gzipBomb(12 * MiB), codes.invalid],
  ['abuse 24 a brotli bomb', hostile.gzipBomb(12 * MiB, 'br'), codes.invalid],
  ['RE-29 HTML', hostile.html(), codes.invalid],
  ['RE-28 an HTML error page', hostile.html(500), codes.transport, { httpStatus: 500 }],
  ['RE-29 an empty object', hostile.emptyObject, codes.invalid],
  ['AN-39 a redirect is not followed', hostile.redirect(307, '/elsewhere'), codes.transport, { httpStatus: 307 }],
  ['F28 a reset at once', hostile.resetAtOnce, codes.transport],
  ['F28 a reset in the middle', hostile.resetMidBody, codes.transport],
  ['F28 an end in the middle', hostile.halfClose, codes.transport],
];

/** These are unusual, but still an answer to the request. */
const readable = new Set(['null-id', 'missing-id', 'missing-version', 'unknown-state']);
const envelopes: Row[] = hostile.wrongEnvelopeKinds
  .filter((kind) => !readable.has(kind) && kind !== 'task-of-another-request')
  .map((kind) => [`RE-29 F29 ${kind}`, hostile.wrongEnvelope(kind), codes.invalid]);

describe('MCP tools/call: failures of the agent', () => {
  let gateway: TestGateway;
  let agent: StubAgent;
  let silent: StubAgent;

  beforeAll(async () => {
    gateway = await startTestGateway();
    agent = await startStubAgent({ card: 'v03', name: 'Hostile' });
    silent = await startStubAgent({ card: 'v03', name: 'Silent' });
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url });
    await gateway.call('POST', '/api/a2a/agents', { url: silent.url, timeoutMs });
  });
  afterAll(async () => {
    await gateway.close();
    await Promise.all([agent.close(), silent.close()]);
  });
  const call = (name = 'hostile.work') => gateway.rpc('tools/call', { name, arguments: {} });

  it.each([...statuses, ...bodies, ...envelopes])('%s', async (_, behaviour, code, facts = {}) => {
    agent.set(behaviour);
    const { error, result } = await call();
    expect([error?.code, result]).toEqual([code, undefined]);
    expect(error.data).toMatchObject({ name: names[code], ...facts });
    await agent.idle();
  });

  it.each<[string, Behaviour]>([
    ['RE-27 F27 no answer', hostile.hang],
    ['RE-27 abuse 25 a very slow answer', hostile.drip(1, 20)],
  ])(
    '%s ends at the limit',
    async (_, behaviour) => {
      silent.set(behaviour);
      const { error } = await call('silent.work');
      expect([error.code, error.data.name]).toEqual([codes.timeout, names[codes.timeout]]);
      await silent.idle();
    },
    20_000, // the default timeout comes later
  );

  it('RE-24 the message is the text of the remote agent', async () => {
    agent.set(failed('the build is broken: ü'));
    expect((await call()).error.message).toContain('the build is broken: ü');
  });

  it('RE-28 an agent that is down', async () => {
    const down = await startStubAgent({ card: 'v03', name: 'Down' });
    await gateway.call('POST', '/api/a2a/agents', { url: down.url });
    await down.close();
    const { error } = await gateway.rpc('tools/call', { name: 'down.work', arguments: {} });
    expect([error.code, error.data.name]).toEqual([codes.transport, names[codes.transport]]);
    expect(error.data.httpStatus).toBeUndefined();
  });

  it('RE-27 after every failure the session continues', async () => {
    for (const kind of clientKinds) {
      const client = await connectMcp(kind, `${gateway.url}/mcp`, gateway.token);
      silent.set(hostile.hang);
      for (const [behaviour, code] of [
        [hostile.http(503), codes.transport],
        [hostile.html(), codes.invalid],
        [failed('no'), codes.failed],
        [hostile.hang, codes.timeout],
      ] as const) {
        agent.set(behaviour);
        const name = code === codes.timeout ? 'silent.work' : 'hostile.work';
        const error = await errorOf(client.callTool({ name, arguments: {} }));
        expect([kind, error.code, error.data.name]).toEqual([kind, code, names[code]]);
      }
      agent.set(data({ fine: true }));
      expect((await client.callTool({ name: 'hostile.work' })).structuredContent).toEqual({ fine: true });
      await client.close();
    }
  });

  it('RE-28 a failed send is not repeated', async () => {
    const before = agent.requests.length;
    agent.set(hostile.http(503));
    await call();
    agent.set(hostile.resetMidBody);
    await call();
    expect(agent.requests.length - before).toBe(2);
  });

  it('RE-30 RE-35 a denial is -32003 with its policy, and no request is sent', async () => {
    const before = agent.requests.length;
    const bob = await gateway.tokenOf('default', 'bob');
    const text = 'forbid(principal == User::"bob", action == Action::"a2a_invoke", resource in A2AAgent::"hostile");';
    const { body } = await gateway.call('POST', '/api/policies', { name: 'not-bob', text });
    for (const kind of clientKinds) {
      const client = await connectMcp(kind, `${gateway.url}/mcp`, bob);
      const error = await errorOf(client.callTool({ name: 'a2a_hostile_work', arguments: {} }));
      expect([kind, error.code, error.data.name]).toEqual([kind, -32003, 'AuthorizationError']);
      expect(error.data.policies).toEqual(['not-bob']);
      await client.close();
    }
    expect(agent.requests.length).toBe(before);
    await gateway.call('DELETE', `/api/policies/${body.id}`);
  });
});
