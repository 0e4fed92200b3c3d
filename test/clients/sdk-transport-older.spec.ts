import { Server as GrpcServer, ServerCredentials } from '@grpc/grpc-js';
import { LegacyA2AService } from '@a2a-js/sdk/compat/v0_3/server/grpc';
import { Deadline } from '../../src/kernel/abort.js';
import type { Endpoint } from '../../src/a2a-client/transports/endpoint-choice.js';
import { SdkTransport, type SdkHop } from '../../src/a2a-client/transports/sdk.transport.js';
import { parseAllowList } from '../../src/platform/http/outbound/address.js';
import type { StreamResponse } from '../../src/protocol/a2a/model.js';
import { closeOpened, closing, stub } from '../support/clients/bridge.js';
import { client } from '../support/clients/outbound.js';
import * as does from '../support/stubs/stub-behaviours.js';
import type { Behaviour, StubCall } from '../support/stubs/stub-call.js';

afterEach(closeOpened);

const params = { message: { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] } };
const transport = () => closing(new SdkTransport(client(), { allow: parseAllowList('127.0.0.0/8'), httpsOnly: false }));

function hop(endpoint: Endpoint): SdkHop {
  const headers = { headersFor: () => Promise.resolve({}), renew: () => false };
  return { endpoint, headers, deadline: new Deadline(10_000), signals: [] };
}

async function all(events: AsyncIterable<StreamResponse>): Promise<StreamResponse[]> {
  const seen = [];
  for await (const event of events) seen.push(event);
  return seen;
}

const about = { taskId: 't', contextId: 'c' };
const sse = (...results: unknown[]): Behaviour =>
  does.stream(results.map((result) => ({ raw: `data: ${JSON.stringify(result)}\n\n` })));

describe('v0.3 over HTTP+JSON', () => {
  const at = (url: string) => hop({ url, binding: 'HTTP+JSON', version: '0.3' });
  const parts = [
    { text: 'a', metadata: { lang: 'en' } },
    { data: { data: { value: [1] } }, metadata: { data_part_compat: true } },
    { file: { fileWithUri: 'https://example.com/c', mimeType: 'text/plain', name: 'c.txt' } },
    { video: { url: 'x' } },
  ];
  const readParts = [
    { text: 'a', metadata: { lang: 'en' } },
    { data: [1] },
    { url: 'https://example.com/c', mediaType: 'text/plain', filename: 'c.txt' },
    { data: { video: { url: 'x' } } },
  ];

  it('(K1) keeps append, metadata and names of parts, and extensions, in a stream and in a subscription', async () => {
    const artifact = { artifactId: 'a', parts, extensions: ['https://x.example/e'], metadata: { own: 1 } };
    const update = { ...about, artifact, append: true, lastChunk: true, metadata: { seq: 2 } };
    const agent = await stub({ card: 'v03', behaviour: sse({ artifactUpdate: update }) });
    const expected = { ...update, artifact: { ...artifact, parts: readParts } };
    expect(await all(transport().stream(at(agent.url), params))).toEqual([{ artifactUpdate: expected }]);
    agent.set(sse({ artifact_update: update }), 'subscribe');
    expect(await all(transport().subscribe(at(agent.url), 't'))).toEqual([{ artifactUpdate: expected }]);
  });

  it('(K1) sets append only when the event has it', async () => {
    const update = { ...about, artifact: { artifactId: 'a', parts: [{ text: 'x' }] } };
    const agent = await stub({
      card: 'v03',
      behaviour: sse({ artifactUpdate: update }, { artifactUpdate: { ...update, append: false } }),
    });
    const seen = await all(transport().stream(at(agent.url), params));
    expect(seen).toEqual([{ artifactUpdate: update }, { artifactUpdate: update }]);
  });

  it('(K1) keeps them in a task and its messages', async () => {
    const message = { messageId: 'm1', role: 'agent', content: parts };
    const status = { state: 'TASK_STATE_SLEEPING', message };
    const task = { id: 't', contextId: 'c', status, artifacts: [{ artifactId: 'a', parts }], history: [message] };
    const agent = await stub({ card: 'v03', behaviour: (call) => call.send(200, JSON.stringify({ task })) });
    const read = { messageId: 'm1', role: 'ROLE_AGENT', parts: readParts };
    expect(await transport().send(at(agent.url), params)).toEqual({
      task: {
        ...task,
        status: { state: 'TASK_STATE_UNSPECIFIED', message: read },
        artifacts: [{ artifactId: 'a', parts: readParts }],
        history: [read],
      },
    });
  });
});

describe('v0.3 over gRPC', () => {
  it('(K1) keeps append in a stream and in a subscription', async () => {
    const artifact = {
      artifactId: 'a',
      name: '',
      description: '',
      parts: [{ part: { $case: 'text', value: 'x' } }, {}],
      metadata: { own: 1 },
      extensions: [],
    };
    const event = (append: boolean) => ({
      payload: {
        $case: 'artifactUpdate',
        value: { ...about, artifact, append, lastChunk: append, metadata: { seq: 1 } },
      },
    });
    const answer = (call: { write(event: unknown): void; end(): void }) => {
      call.write(event(false));
      call.write(event(true));
      call.end();
    };
    const server = new GrpcServer();
    server.addService(LegacyA2AService, { sendStreamingMessage: answer, taskSubscription: answer });
    const port = await new Promise<number>((resolve, reject) =>
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      ),
    );
    closing({ close: async () => server.forceShutdown() });
    const at = hop({ url: `127.0.0.1:${port}`, binding: 'GRPC', version: '0.3' });
    const read = {
      ...about,
      artifact: { artifactId: 'a', parts: [{ text: 'x' }, { data: {} }], metadata: { own: 1 } },
      metadata: { seq: 1 },
    };
    const expected = [{ artifactUpdate: read }, { artifactUpdate: { ...read, append: true, lastChunk: true } }];
    expect(await all(transport().stream(at, params))).toEqual(expected);
    expect(await all(transport().subscribe(at, 't'))).toEqual(expected);
  });
});

describe.each(['1.0', '0.3'] as const)('JSON-RPC %s', (version) => {
  const at = (url: string) => hop({ url, binding: 'JSONRPC', version });
  const envelope = (call: StubCall, result: unknown) =>
    JSON.stringify({ jsonrpc: '2.0', id: call.route.rpcId, result });
  const answers =
    (result: unknown): Behaviour =>
    (call) =>
      call.send(200, envelope(call, result));
  /** Streams events; a text is sent unchanged. */
  const streams =
    (...events: unknown[]): Behaviour =>
    (call) =>
      does.stream(
        events.map((event) => ({ raw: typeof event === 'string' ? event : `data: ${envelope(call, event)}\n\n` })),
      )(call);
  const isOlder = version === '0.3';
  const kind = (name: string) => (isOlder ? { kind: name } : {});
  const done = isOlder ? 'completed' : 'TASK_STATE_COMPLETED';
  const card = isOlder ? 'v03' : 'v1';
  const wrapped = (task: object) => (isOlder ? { kind: 'task', ...task } : { task });
  const artifactUpdate = (update: object) =>
    isOlder ? { kind: 'artifact-update', ...update } : { artifactUpdate: update };
  const statusUpdate = (state: string) => {
    const update = { ...about, status: { state } };
    return isOlder ? { kind: 'status-update', final: true, ...update } : { statusUpdate: update };
  };
  const activity = { kind: 'agent-native/agent-activity', activity: { step: 1 } };

  it('(N8) keeps parts of an unknown kind as data, in a reply and in a stream', async () => {
    const parts = [{ ...kind('text'), text: 'answer' }, activity, { kind: 'video', url2: 'x' }];
    const artifact = { artifactId: 'a', parts };
    const metadata = { 'urn:rialto:whole-part': true };
    const read = {
      artifactId: 'a',
      parts: [{ text: 'answer' }, { data: activity, metadata }, { data: parts[2], metadata }],
    };
    const message = { ...kind('message'), messageId: 'm', role: isOlder ? 'agent' : 'ROLE_AGENT', parts };
    const task = { id: 't', contextId: 'c', status: { state: done, message }, artifacts: [artifact] };
    const agent = await stub({ card, behaviour: answers(wrapped(task)) });
    expect(await transport().send(at(agent.url), params)).toMatchObject({
      task: { status: { message: { parts: read.parts } }, artifacts: [read] },
    });
    agent.set(streams(artifactUpdate({ ...about, artifact })));
    expect(await all(transport().stream(at(agent.url), params))).toEqual([
      { artifactUpdate: { ...about, artifact: read } },
    ]);
  });

  it('(C03) accepts absent lists as empty ones, and null as absent', async () => {
    const message = { ...kind('message'), messageId: 'm', role: isOlder ? 'agent' : 'ROLE_AGENT' };
    const artifacts = [
      { artifactId: 'a', parts: [{ ...kind('text'), text: 'the answer', metadata: null }], name: null },
      { artifactId: 'facts', metadata: { tokens: 3 } },
      { artifactId: 'b', parts: null, extensions: null },
    ];
    const task = {
      id: 't',
      contextId: 'c',
      status: { state: done, message, timestamp: null },
      artifacts,
      history: null,
    };
    const agent = await stub({ card, behaviour: answers(wrapped({ ...task, metadata: null })) });
    expect(await transport().send(at(agent.url), params)).toMatchObject({
      task: {
        status: { message: { messageId: 'm', parts: [] } },
        artifacts: [
          { artifactId: 'a', parts: [{ text: 'the answer' }] },
          { artifactId: 'facts', parts: [], metadata: { tokens: 3 } },
          { artifactId: 'b', parts: [] },
        ],
      },
    });
    agent.set(streams(artifactUpdate({ ...about, artifact: artifacts[1] }), statusUpdate(done)));
    expect(await all(transport().stream(at(agent.url), params))).toHaveLength(2);
  });

  it('(C04) skips heartbeats and other custom events', async () => {
    const beats = [
      'event: ping\ndata: {}\n\n',
      'event: heartbeat\ndata: {"type":"heartbeat"}\n\n',
      'event: tick\ndata: 10:00\n\n',
    ];
    const agent = await stub({ card, behaviour: streams(...beats, statusUpdate(done), ...beats) });
    expect(await all(transport().stream(at(agent.url), params))).toMatchObject([
      { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } },
    ]);
  });
});
