import { Message, Task, type StreamResponse } from '@a2a-js/sdk';
import type { Client } from '@a2a-js/sdk/client';
import {
  A2AError,
  ContentTypeNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors';
import { A2AClient } from '../../../src/a2a-client/client.js';
import { publish } from '../../support/clients/a2a.js';
import {
  closeSdkClients,
  sdkClient,
  sdkSend,
  sdkWires,
  setUpSdk,
  states,
  type SdkClientOptions,
} from '../../support/clients/a2a-sdk.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

const absent = '01900000-0000-7000-8000-000000000000';
const bytes = Buffer.from([0, 1, 2, 127, 128, 254, 255]);

/*
 * Tests the unchanged official JavaScript client: both versions over all three bindings, against two processes on one
 * database.
 */
describe('RI-01: the official client', () => {
  let first: TestGateway;
  let second: TestGateway;

  beforeAll(async () => {
    first = await startTestGateway({ GRPC_PORT: '0' });
    for (const [suffix, protocolVersions] of [
      ['', ['1.0', '0.3']],
      ['03', ['0.3']],
    ] as const) {
      const agents: [string, object][] = [
        ['echo', { handle: `kofi${suffix}`, extendedCard: true, defaultInputModes: ['text/plain', 'application/*'] }],
        ['slow', { executor: { kind: 'echo', delayMs: 600, chunks: 3 } }],
        ['asleep', { executor: { kind: 'echo', delayMs: 600_000 } }],
        ['asks', { executor: { kind: 'echo', ask: 'Which colour?' } }],
      ];
      for (const [name, more] of agents) await publish(first, { name: `${name}${suffix}`, protocolVersions, ...more });
    }
    await setUpSdk(first);
    second = await startTestGateway({ GRPC_PORT: '0' }, first);
  });
  afterAll(async () => {
    closeSdkClients();
    await second.close();
    await first.close();
  });

  describe.each(sdkWires)('of $version over $binding', (wire) => {
    const { version, binding } = wire;
    const suffix = version === '1.0' ? '' : '03';
    const client = (agent = 'echo', { at = first, ...options }: SdkClientOptions & { at?: TestGateway } = {}) =>
      sdkClient(at, wire, { agent: `${agent}${suffix}`, ...options });
    const taskOf = (result: Message | Task): Task => {
      expect(result).toHaveProperty('status');
      return result as Task;
    };
    const begin = async (one: Client): Promise<Task> =>
      taskOf(await one.sendMessage(sdkSend('work', {}, { returnImmediately: true })));
    const collect = async (events: AsyncGenerator<StreamResponse>): Promise<StreamResponse[]> => {
      const all: StreamResponse[] = [];
      for await (const event of events) all.push(event);
      return all;
    };
    const failing = (promise: Promise<unknown>): Promise<A2AError> =>
      promise.then(
        () => Promise.reject(new Error('it did not fail')),
        (error: unknown) => error as A2AError,
      );

    it('finds the agent by its url and by its handle', async () => {
      const byName = await client();
      expect([byName.protocolVersion.slice(0, 3), byName.transport.protocolName]).toEqual([version, binding]);
      const byHandle = await client('echo', { cardPath: `/a2a/kofi${suffix}/agent.json` });
      const [card] = await Promise.all([byHandle.getAgentCard(), byHandle.sendMessage(sdkSend('hello'))]);
      expect(card).toMatchObject({ name: `echo${suffix}`, capabilities: { streaming: true, pushNotifications: true } });
    });

    it('sends and waits for the answer', async () => {
      const task = taskOf(await (await client()).sendMessage(sdkSend('hello')));
      expect(task.status?.state).toBe(states.TASK_STATE_COMPLETED);
      expect(task.artifacts[0]!.parts[0]!.content).toEqual({ $case: 'text', value: 'hello' });
      expect(task.status?.message?.parts[0]!.content).toEqual({ $case: 'text', value: 'hello' });
    });

    it('sends without waiting, then reads, lists and cancels', async () => {
      const one = await client('asleep');
      const { id, status } = await begin(one);
      expect([states.TASK_STATE_SUBMITTED, states.TASK_STATE_WORKING]).toContain(status!.state);
      expect(await one.getTask({ tenant: '', id, historyLength: 1 })).toMatchObject({ id, history: [{ role: 1 }] });
      if (version === '1.0') {
        const { tasks, totalSize } = await one.listTasks({ ...listAll, contextId: '' });
        expect([tasks.map((task) => task.id).includes(id), totalSize > 0]).toEqual([true, true]);
      }
      const canceled = await one.cancelTask({ tenant: '', id, metadata: undefined });
      expect(canceled.status?.state).toBe(states.TASK_STATE_CANCELED);
    });

    it('streams an answer: the task, its pieces, its end', async () => {
      const events = await collect((await client('slow')).sendMessageStream(sdkSend('one two three')));
      const cases = events.map(({ payload }) => payload?.$case);
      expect(cases).toEqual(['task', 'statusUpdate', ...Array(3).fill('artifactUpdate'), 'statusUpdate']);
      const texts = events.flatMap(({ payload }) =>
        payload?.$case === 'artifactUpdate' ? payload.value.artifact!.parts.map((part) => part.content!.value) : [],
      );
      expect(texts.join('')).toBe('one two three');
    });

    it('follows a task in another process, and cancels it there', async () => {
      const { id } = await begin(await client('asleep'));
      const there = await client('asleep', { at: second });
      const events = there.resubscribeTask({ tenant: '', id });
      expect((await events.next()).value).toMatchObject({ payload: { $case: 'task', value: { id } } });
      const rest = collect(events);
      const elsewhere = await client('asleep', { at: second });
      expect((await elsewhere.cancelTask({ tenant: '', id, metadata: undefined })).status?.state).toBe(
        states.TASK_STATE_CANCELED,
      );
      expect((await rest).at(-1)?.payload).toMatchObject({
        $case: 'statusUpdate',
        value: { status: { state: states.TASK_STATE_CANCELED } },
      });
    });

    it('answers a question and continues', async () => {
      const one = await client('asks');
      const asked = taskOf(await one.sendMessage(sdkSend('paint')));
      expect(asked.status).toMatchObject({ state: states.TASK_STATE_INPUT_REQUIRED });
      const { id: taskId, contextId } = asked;
      const done = taskOf(await one.sendMessage(sdkSend('red', { taskId, contextId })));
      expect([done.id, done.status?.state]).toEqual([taskId, states.TASK_STATE_COMPLETED]);
      expect(done.history.map(({ parts }) => parts[0]!.content!.value)).toEqual(['paint', 'Which colour?', 'red']);
    });

    it('gets files and data back byte for byte', async () => {
      const data = { key: 'value', list: [1, 2.5, null, { deep: true }], text: 'grüße 🎈' };
      const parts = [
        { raw: bytes.toString('base64'), mediaType: 'application/octet-stream' },
        { url: 'https://example.com/output.txt', mediaType: 'text/plain' },
        { data },
      ];
      const task = taskOf(await (await client()).sendMessage(sdkSend(parts)));
      expect(task.artifacts[0]!.parts.map(({ content, mediaType }) => [content, mediaType])).toEqual([
        [{ $case: 'raw', value: bytes }, 'application/octet-stream'],
        [{ $case: 'url', value: 'https://example.com/output.txt' }, 'text/plain'],
        [{ $case: 'data', value: data }, ''],
      ]);
    });

    it('creates, reads, lists and deletes a push configuration', async () => {
      const one = await client('asleep');
      const { id: taskId } = await begin(one);
      const url = 'http://127.0.0.1:9/hook';
      const given = { tenant: '', id: 'mine', taskId, url, token: 't-1', authentication: undefined };
      expect(await one.createTaskPushNotificationConfig(given)).toMatchObject({ id: 'mine', taskId, url });
      const named = { tenant: '', taskId, id: 'mine' };
      expect(await one.getTaskPushNotificationConfig(named)).toMatchObject({ id: 'mine', taskId, url });
      const page = { tenant: '', taskId, pageSize: 0, pageToken: '' };
      const list = async () => (await one.listTaskPushNotificationConfig(page)).configs.map(({ id }) => id);
      expect(await list()).toEqual(['mine']);
      await one.deleteTaskPushNotificationConfig(named);
      expect(await list()).toEqual([]);
      await one.cancelTask({ tenant: '', id: taskId, metadata: undefined });
    });

    it('reads the extended card with a credential', async () => {
      const one = await client();
      const { name, skills } = await one.transport.getExtendedAgentCard({ tenant: '' }, authorised(first));
      expect([name, skills.length > 0]).toEqual([`echo${suffix}`, true]);
    });

    it('throws its own classes of errors', async () => {
      const one = await client();
      const done = taskOf(await one.sendMessage(sdkSend('done')));
      const named = { tenant: '', id: done.id, metadata: undefined };
      expect(await failing(one.getTask({ tenant: '', id: absent }))).toBeInstanceOf(TaskNotFoundError);
      expect(await failing(one.cancelTask(named))).toBeInstanceOf(TaskNotCancelableError);
      const again = sdkSend('more', { taskId: done.id, contextId: done.contextId });
      expect(await failing(one.sendMessage(again))).toBeInstanceOf(UnsupportedOperationError);
      const image = [{ raw: 'aGk=', mediaType: 'image/png' }];
      expect(await failing(one.sendMessage(sdkSend(image)))).toBeInstanceOf(ContentTypeNotSupportedError);
      const followed = await failing(one.resubscribeTask({ tenant: '', id: absent }).next());
      // An error in an event of a stream, which clients of 0.3 expect (K3), is the cause of the error that the SDK
      // throws.
      const error = binding === 'JSONRPC' && version === '0.3' ? followed.cause : followed;
      expect(error).toBeInstanceOf(TaskNotFoundError);
      const empty = await failing(one.sendMessage(sdkSend([])));
      // The SDK has a class for it only on JSON-RPC of v1.0; elsewhere the status shows it.
      if (binding === 'JSONRPC' && version === '1.0') expect(empty).toBeInstanceOf(RequestMalformedError);
      if (binding === 'HTTP+JSON' && version === '1.0') expect(empty).toMatchObject({ statusCode: 400 });
      if (binding === 'GRPC') expect(empty).toMatchObject({ status: 3 });
      expect(empty.message).toMatch(/parts|content/);
    });

    it('is refused without a credential', async () => {
      for (const [token, said] of [
        [null, 'Authentication required'],
        ['rlt_nobody', 'Invalid API key'],
      ] as const) {
        const statuses: number[] = [];
        const one = await client('echo', { token, statuses });
        const refused = await failing(one.sendMessage(sdkSend('hello')));
        const streamed = await failing(one.sendMessageStream(sdkSend('hello')).next());
        for (const { message } of [refused, streamed]) expect(message).toContain(said);
        if (binding === 'GRPC') expect([refused, streamed]).toMatchObject([{ status: 16 }, { status: 16 }]);
        else expect(statuses).toEqual([401, 401]);
      }
    });

    /** Returns the metadata of a gRPC call: the transport itself adds none, only the interceptors of the client do. */
    const authorised = ({ token }: TestGateway) =>
      binding === 'GRPC'
        ? { serviceParameters: { authorization: `Bearer ${token}`, 'rialto-agent': `echo${suffix}` } }
        : undefined;
  });
});

describe('AN-25: the client of Rialto', () => {
  it('reads the card of a published agent, sends to it and streams from it, with a bearer key', async () => {
    const gateway = await startTestGateway();
    await publish(gateway, { executor: { kind: 'echo', delayMs: 30, chunks: 2 } });
    const { body } = await gateway.call('POST', '/api/keys', { name: 'client', role: 'member' });
    const url = `${gateway.url}/a2a/agents/echo`;
    const client = new A2AClient(url, { apiKey: body.key, allow: '127.0.0.0/8' });
    expect(await client.getAgentCard()).toMatchObject({ name: 'echo' });
    const reply = await client.send('hello');
    expect(reply).toMatchObject({ task: { status: { state: 'TASK_STATE_COMPLETED' } } });
    const events: string[] = [];
    for await (const event of client.stream('hello')) events.push(Object.keys(event)[0]!);
    expect(events).toEqual(['task', 'statusUpdate', 'artifactUpdate', 'artifactUpdate', 'statusUpdate']);
    const stranger = new A2AClient(url, { apiKey: 'rlt_wrong', allow: '127.0.0.0/8' });
    await expect(stranger.send('hello')).rejects.toMatchObject({ code: 'unauthenticated' });
    await gateway.close();
  });
});

const listAll = {
  tenant: '',
  status: states.TASK_STATE_UNSPECIFIED,
  pageToken: '',
  statusTimestampAfter: undefined,
};
