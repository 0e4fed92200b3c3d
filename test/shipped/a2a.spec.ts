import type { StreamResponse } from '@a2a-js/sdk';
import { openStream, publish, rpc, userMessage } from '../support/clients/a2a.js';
import { closeSdkClients, sdkClient, sdkSend, sdkWires, setUpSdk, states } from '../support/clients/a2a-sdk.js';
import { Board } from '../support/gateway/board.js';
import { eventually } from '../support/gateway/eventually.js';
import { shipped } from '../support/checks/shipped.js';
import { eventsIn, StrictConnection, type StrictRequest } from '../support/clients/strict-http.js';

const gateway = shipped();
const completed = { state: 'TASK_STATE_COMPLETED' };
const words = ['one', 'two', 'three'];

/** Parts of a streamed task that the test reads: its states, and the text of its artifacts. */
function told(results: any[]) {
  return {
    kinds: results.map((result) => Object.keys(result)[0]),
    last: results.at(-1)?.statusUpdate?.status.state,
    text: results.flatMap(({ artifactUpdate }) => artifactUpdate?.artifact.parts ?? []).map(({ text }: any) => text),
  };
}
const wholeStream = {
  kinds: ['task', 'statusUpdate', 'artifactUpdate', 'artifactUpdate', 'artifactUpdate', 'statusUpdate'],
  last: 'TASK_STATE_COMPLETED',
};

describe('the A2A doors of the shipped tree', () => {
  beforeAll(async () => {
    for (const [suffix, protocolVersions] of [
      ['', ['1.0', '0.3']],
      ['03', ['0.3']],
    ] as const) {
      await publish(gateway, { name: `echo${suffix}`, protocolVersions });
      const executor = { kind: 'echo', delayMs: 300, chunks: 3 };
      await publish(gateway, { name: `pieces${suffix}`, protocolVersions, executor });
    }
    await setUpSdk(gateway);
  });
  afterAll(() => closeSdkClients());

  /** The events of a stream, on a connection that checks every byte: one terminator, and nothing after it. */
  const strictly = async ({ headers, ...request }: StrictRequest) => {
    const connection = await StrictConnection.open(gateway.url);
    try {
      const authorization = `Bearer ${gateway.token}`;
      const answer = await connection.exchange({ ...request, headers: { authorization, ...headers } });
      await connection.finish();
      expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/event-stream']);
      return eventsIn(answer.body);
    } finally {
      connection.destroy();
    }
  };

  it('show the card with the public address, for all three bindings', async () => {
    const { status, body } = await gateway.call('GET', '/a2a/agents/echo/.well-known/agent-card.json');
    expect([status, body.name]).toEqual([200, 'echo']);
    const faces = body.supportedInterfaces.map(({ protocolBinding, url }: any) => `${protocolBinding} ${url}`);
    const address = `${gateway.url}/a2a/agents/echo`;
    const expected = [`JSONRPC ${address}`, `HTTP+JSON ${address}`, `GRPC ${gateway.grpc}`];
    expect(faces).toEqual(expect.arrayContaining(expected));
  });

  it('take a message over JSON-RPC and wait for the answer', async () => {
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('hello') });
    expect(task).toMatchObject({ status: completed, artifacts: [{ parts: [{ text: 'hello' }] }] });
  });

  it('refuse a message without a token', async () => {
    const call = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: userMessage('hello') } };
    expect(await gateway.call('POST', '/a2a/agents/echo', call, null)).toMatchObject({ status: 401 });
  });

  it('stream an answer over JSON-RPC: every event, then one terminator', async () => {
    const params = { message: userMessage(words.join(' ')) };
    const body = { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params };
    const events = await strictly({ path: '/a2a/agents/pieces', body });
    const { text, ...rest } = told(events.map(({ result }) => result));
    expect(rest).toEqual(wholeStream);
    expect(text.join('')).toBe(words.join(' '));
  });

  it('accept a message without waiting, and the worker does the work: the api process runs no queue', async () => {
    const configuration = { returnImmediately: true };
    const send = async () => {
      const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('later'), configuration });
      expect(['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING']).toContain(task.status.state);
      const done = await eventually(
        () => rpc(gateway, 'GetTask', { id: task.id }),
        ({ status }) => status.state === completed.state,
      );
      expect(done.artifacts).toMatchObject([{ parts: [{ text: 'later' }] }]);
      const [job] = await new Board(gateway).jobsOf('task-execution', 'completed', task.id);
      expect(job!.data).toMatchObject({ taskId: task.id });
      return job!;
    };
    // On a busy machine a sweep of the worker may come before the job, which finds nothing to do then.
    const { progress } = await eventually(send, (job) => job.progress !== 0);
    expect(progress).toMatchObject({ state: 'completed' });
  });

  it('take a message of version 0.3', async () => {
    const message = { kind: 'message', messageId: 'm-03', role: 'user', parts: [{ kind: 'text', text: 'older' }] };
    const task = await rpc(gateway, 'message/send', { message }, { headers: { 'A2A-Version': '0.3' } });
    expect(task).toMatchObject({
      kind: 'task',
      status: { state: 'completed' },
      artifacts: [{ parts: [{ kind: 'text', text: 'older' }] }],
    });
  });

  it('take and stream a message over HTTP+JSON', async () => {
    const sent = await gateway.call('POST', '/a2a/agents/echo/message:send', { message: userMessage('rest') });
    expect(sent).toMatchObject({ status: 200, body: { task: { status: completed } } });
    const body = { message: userMessage(words.join(' ')) };
    const { text, ...rest } = told(await strictly({ path: '/a2a/agents/pieces/message:stream', body }));
    expect(rest).toEqual(wholeStream);
    expect(text.join('')).toBe(words.join(' '));
  });

  it('tell the events of a run and end with it', async () => {
    const configuration = { returnImmediately: true };
    const options = { agent: 'pieces' };
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('a b c'), configuration }, options);
    const path = `/a2a/tasks/${task.id}/events`;
    const stream = await openStream(`${gateway.url}${path}`, { token: gateway.token, method: 'GET' });
    const frames = await stream.rest();
    expect(frames.at(-1)).toEqual({ event: 'end', data: {} });
    expect(frames.at(-2)!.data.status).toBe('completed');
    const again = await strictly({ path });
    expect(again).toEqual(frames.map(({ data }) => data));
  });

  describe.each(sdkWires)('for the official client of $version over $binding', (wire) => {
    const suffix = wire.version === '1.0' ? '' : '03';

    it('take a message and stream an answer', async () => {
      const echo = await sdkClient(gateway, wire, { agent: `echo${suffix}` });
      const sent = await echo.sendMessage(sdkSend('hello'));
      expect(sent).toMatchObject({ status: { state: states.TASK_STATE_COMPLETED } });
      const pieces = await sdkClient(gateway, wire, { agent: `pieces${suffix}` });
      const events: StreamResponse[] = [];
      for await (const event of pieces.sendMessageStream(sdkSend(words.join(' ')))) events.push(event);
      expect(events.map(({ payload }) => payload?.$case)).toEqual(wholeStream.kinds);
      expect(events.at(-1)!.payload).toMatchObject({ value: { status: { state: states.TASK_STATE_COMPLETED } } });
    });
  });
});
