import {
  ListResponseShape,
  PushConfigShape,
  SendResponseShape,
  StreamResponseShape,
  TaskShape,
} from '../../support/checks/conformance-shapes.js';
import {
  bindings,
  errors,
  startConformance,
  tck,
  type Events,
  type Failure,
  type Given,
  type Reply,
  type Wire,
} from '../../support/checks/conformance.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';

/*
 * Checks of a public kit for an agent of v1.0 on every binding, with the error table of v1.0.0: the kit finds the agent
 * by the card of the host, and calls it without a credential.
 */

const invalid = [-32602, 400, 3] as const;
const completed = 'TASK_STATE_COMPLETED';
const absent = 'tck-nonexistent-001';
let all: Given;

beforeAll(async () => void (all = await startConformance('v1')));
afterAll(() => all.close());

describe.each(bindings)('v1.0 over %s', (binding) => {
  let wire: Wire;
  let sink: WebhookSink;

  beforeAll(async () => {
    wire = all.wires.find((one) => one.binding === binding)!;
    sink = await startWebhookSink();
  });
  afterAll(() => sink.close());

  const index = bindings.indexOf(binding);
  const isJson = binding !== 'GRPC';
  const call = async (...[operation, params]: Parameters<Wire['call']>): Promise<any> => {
    const { value, failure } = await wire.call(operation, params);
    if (failure) throw new Error(`${operation}: ${JSON.stringify(failure)}`);
    return value;
  };
  const send = async (kind: string, more: object = {}, configuration?: object): Promise<any> => {
    const value = await call('SendMessage', { ...tck(kind, more), ...(configuration && { configuration }) });
    return SendResponseShape.parse(value);
  };
  const task = async (...args: Parameters<typeof send>): Promise<any> => (await send(...args)).task;
  const open = async (...[operation, params]: Parameters<Wire['stream']>): Promise<Events> => {
    const events = await wire.stream(operation, params);
    if (events.failure) throw new Error(`${operation}: ${JSON.stringify(events.failure)}`);
    if (isJson) expect(events.contentType).toMatch(/^text\/event-stream/);
    return events;
  };
  const shaped = (events: any[]): any[] => events.map((event) => StreamResponseShape.parse(event));
  const states = (events: any[]): string[] =>
    events.flatMap(({ task: one, statusUpdate }) => (one ?? statusUpdate)?.status.state ?? []) as string[];
  const failureOf = async (reply: Promise<Reply>): Promise<Failure> => {
    const { failure, value } = await reply;
    if (!failure) throw new Error(`expected a refusal, but the call returned ${JSON.stringify(value)}`);
    return failure;
  };
  const refused = async (reply: Promise<Reply>, reason: keyof typeof errors): Promise<void> =>
    expect(await failureOf(reply)).toMatchObject({ reason, domain: 'a2a-protocol.org', code: errors[reason][index] });
  const rejected = async (reply: Promise<Reply>): Promise<void> =>
    expect((await failureOf(reply)).code).toBe(invalid[index]);

  describe('SendMessage', () => {
    it('answers with an ended task', async () => {
      const one = await task('complete-task');
      expect(one.status).toMatchObject({ state: completed, message: { parts: [{ text: 'Hello from TCK' }] } });
    });

    it('creates a task for each message, though all have one id, each with a new context', async () => {
      const tasks = await Promise.all([task('complete-task'), task('complete-task'), task('complete-task')]);
      expect(new Set(tasks.map(({ id }) => id)).size).toBe(3);
      expect(new Set(tasks.map(({ contextId }) => contextId)).size).toBe(3);
    });

    it('keeps the context of the message', async () => {
      const contextId = 'tck-client-context-001';
      expect((await task('complete-task', { contextId })).contextId).toBe(contextId);
    });

    it('answers with a message only', async () => {
      const { message } = await send('message-response');
      expect(message).toMatchObject({ role: 'ROLE_AGENT', parts: [{ text: 'Direct message response' }] });
    });

    it.each([
      ['input-required', 'TASK_STATE_INPUT_REQUIRED'],
      ['auth-required', 'TASK_STATE_AUTH_REQUIRED'],
      ['reject-task', 'TASK_STATE_REJECTED'],
      ['task-failure', 'TASK_STATE_FAILED'],
    ])('%s: waits for %s, which a later read shows too', async (kind, state) => {
      const { id, status } = await task(kind);
      expect(status).toMatchObject({ state, message: { role: 'ROLE_AGENT' } });
      expect((await call('GetTask', { id })).status.state).toBe(state);
    });

    it.each([
      ['text', { text: 'Generated text content' }],
      ['file', { raw: expect.any(String), filename: 'output.txt', mediaType: 'text/plain' }],
      ['file-url', { url: 'https://example.com/output.txt', filename: 'output.txt', mediaType: 'text/plain' }],
      ['data', { data: { key: 'value', count: 42 } }],
    ])('answers with an artifact: %s', async (kind, part) => {
      const { artifacts, status } = await task(`artifact-${kind}`);
      expect(status.state).toBe(completed);
      expect(artifacts).toEqual([expect.objectContaining({ parts: [part] })]);
    });

    it('waits for the end, unless it returns immediately', async () => {
      const [now, later, usual] = await Promise.all([
        task('delayed-complete', {}, { returnImmediately: true }),
        task('delayed-complete', {}, { returnImmediately: false }),
        task('delayed-complete'),
      ]);
      expect(now.status.state).toMatch(/SUBMITTED|WORKING/);
      expect(later.status).toMatchObject({ state: completed, message: { parts: [{ text: 'Done after delay' }] } });
      expect(usual.status.state).toBe(completed);
    });

    it('continues a task that asked, also without its context id', async () => {
      const { id, contextId } = await task('input-required');
      const still = await task('input-required', { taskId: id });
      expect(still).toMatchObject({ id, contextId, status: { state: 'TASK_STATE_INPUT_REQUIRED' } });
      const over = await task('complete-task', { taskId: id });
      expect(over).toMatchObject({ id, contextId, status: { state: completed } });
      const { history } = await call('GetTask', { id });
      const userMessages = history.filter(({ role }: any) => role === 'ROLE_USER');
      expect(userMessages).toMatchObject([
        tck('input-required').message,
        tck('input-required').message,
        tck('complete-task').message,
      ]);
    });

    it('refuses a task that is ended, missing, or of another context', async () => {
      const { id } = await task('complete-task');
      await refused(wire.call('SendMessage', tck('terminal', { taskId: id })), 'UNSUPPORTED_OPERATION');
      await refused(wire.call('SendMessage', tck('multi-004', { taskId: absent })), 'TASK_NOT_FOUND');
      const open = await task('input-required');
      await rejected(wire.call('SendMessage', tck('mismatch', { taskId: open.id, contextId: 'tck-wrong-context' })));
    });

    it('refuses a media type that the agent does not accept', async () => {
      const part = { raw: 'dGNr', mediaType: 'application/x-unsupported-tck-type' };
      await refused(wire.call('SendMessage', tck('send-003', {}, [part])), 'CONTENT_TYPE_NOT_SUPPORTED');
    });

    it('refuses an invalid message', async () => {
      for (const params of [{}, tck('x', {}, []), tck('x', { messageId: '' })])
        await rejected(wire.call('SendMessage', params));
    });

    it('ignores unknown members', async () => {
      const { message } = tck('complete-task', { tckUnknownField: 'ignored' });
      const { task: one } = await call('SendMessage', { message, tckExtraParam: 42 });
      expect(one.status.state).toBe(completed);
    });
  });

  describe('GetTask', () => {
    it('shows the task', async () => {
      const one = await task('artifact-text');
      expect(TaskShape.parse(await call('GetTask', { id: one.id }))).toEqual(one);
    });

    it('limits the history', async () => {
      const { id } = await task('input-required');
      const over = await task('complete-task', { taskId: id }, { historyLength: 0 });
      expect(over.history ?? []).toEqual([]);
      expect((await call('GetTask', { id, historyLength: 0 })).history ?? []).toEqual([]);
      expect((await call('GetTask', { id, historyLength: 1 })).history).toHaveLength(1);
      expect((await call('GetTask', { id, historyLength: 10 })).history.length).toBeGreaterThan(1);
      await rejected(wire.call('GetTask', { id, historyLength: -1 }));
    });

    it('reports an unknown task', () => refused(wire.call('GetTask', { id: absent }), 'TASK_NOT_FOUND'));
  });

  describe('ListTasks', () => {
    const list = async (params: object): Promise<any> => ListResponseShape.parse(await call('ListTasks', params));
    const contextId = `tck-list-${index}`;
    let ids: string[] = [];

    beforeAll(async () => {
      for (const kind of ['complete-task', 'artifact-text', 'input-required'])
        ids = [((await task(kind, { contextId })) as { id: string }).id, ...ids];
    });
    const idsOf = ({ tasks }: any): string[] => tasks.map(({ id }: any) => id as string);

    it('has all tasks that the caller may see, newest first', async () => {
      const { tasks, pageSize } = await list({});
      const times = tasks.map(({ status }: any) => status.timestamp as string);
      expect(times).toEqual([...times].sort().reverse());
      expect(pageSize).toBe(50);
    });

    it('is empty for an unknown context', async () => {
      const none = await list({ contextId: 'tck-test-context' });
      expect(none).toEqual({ tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 });
    });

    it('filters, and counts the filtered tasks', async () => {
      expect(await list({ contextId })).toMatchObject({ totalSize: 3, nextPageToken: '' });
      expect(idsOf(await list({ contextId }))).toEqual(ids);
      const asking = await list({ contextId, status: 'TASK_STATE_INPUT_REQUIRED' });
      expect([idsOf(asking), asking.totalSize]).toEqual([[ids[0]], 1]);
      const [newest] = (await list({ contextId })).tasks;
      const after = await list({ contextId, statusTimestampAfter: newest.status.timestamp });
      expect(idsOf(after)).toContain(ids[0]);
    });

    it('returns pages', async () => {
      const first = await list({ contextId, pageSize: 2 });
      expect([idsOf(first), first.pageSize, first.totalSize]).toEqual([ids.slice(0, 2), 2, 3]);
      const last = await list({ contextId, pageSize: 2, pageToken: first.nextPageToken });
      expect([idsOf(last), last.nextPageToken]).toEqual([ids.slice(2), '']);
    });

    it('omits artifacts, unless the request includes them', async () => {
      for (const params of [{ contextId }, { contextId, includeArtifacts: false }])
        for (const one of (await list(params)).tasks) expect(one).not.toHaveProperty('artifacts');
      const { tasks } = await list({ contextId, includeArtifacts: true });
      expect(tasks[1].artifacts).toHaveLength(1);
    });

    it.each([{ pageSize: -1 }, { pageSize: 101 }, { pageToken: 'a foreign token' }, { historyLength: -1 }])(
      'refuses %j',
      (params) => rejected(wire.call('ListTasks', { contextId, ...params })),
    );
  });

  describe('CancelTask', () => {
    it.each(['input-required', 'auth-required'])('ends a task: %s', async (kind) => {
      const { id } = await task(kind);
      const canceled = TaskShape.parse(await call('CancelTask', { id }));
      expect(canceled).toMatchObject({ id, status: { state: 'TASK_STATE_CANCELED' } });
    });

    it('ends a working task', async () => {
      const { id } = await task('cancel', {}, { returnImmediately: true });
      expect((await call('CancelTask', { id })).status.state).toBe('TASK_STATE_CANCELED');
    });

    it('refuses a task that is ended or missing', async () => {
      const { id } = await task('complete-task');
      await refused(wire.call('CancelTask', { id }), 'TASK_NOT_CANCELABLE');
      await refused(wire.call('CancelTask', { id: absent }), 'TASK_NOT_FOUND');
    });
  });

  describe('streams', () => {
    const order = ['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING', completed];

    it.each(['stream-001', 'stream-003', 'stream-ordering-001', 'stream-artifact-text', 'stream-artifact-file'])(
      '%s begins with the task, proceeds, and ends with it',
      async (kind) => {
        const events = shaped(await (await open('SendStreamingMessage', tck(kind))).rest());
        expect(Object.keys(events[0])).toEqual(['task']);
        expect(states(events)).toEqual(order.slice(order.indexOf(states(events)[0]!)));
        const { artifact } = events.find(({ artifactUpdate }) => artifactUpdate).artifactUpdate;
        const content = kind.endsWith('file')
          ? { filename: 'output.txt', mediaType: 'text/plain' }
          : { text: expect.any(String) };
        expect(artifact.parts).toMatchObject([content]);
      },
    );

    it('stream-002 ends after the task', async () => {
      const events = shaped(await (await open('SendStreamingMessage', tck('stream-002'))).rest());
      expect(states(events).at(-1)).toBe(completed);
    });

    it('sends chunks; the second one is appended to the first', async () => {
      const events = shaped(await (await open('SendStreamingMessage', tck('stream-artifact-chunked'))).rest());
      const [one, two] = events.flatMap(({ artifactUpdate }) => artifactUpdate ?? []);
      expect(two.artifact.artifactId).toBe(one.artifact.artifactId);
      expect([one.append ?? false, two.append, one.lastChunk ?? false, two.lastChunk]).toEqual([
        false,
        true,
        false,
        true,
      ]);
      const { id } = events[0]!.task;
      expect((await call('GetTask', { id })).artifacts).toMatchObject([
        { parts: [{ text: 'first ' }, { text: 'second' }] },
      ]);
    });

    it('sends one message and no other event', async () => {
      const events = shaped(await (await open('SendStreamingMessage', tck('message-response'))).rest());
      expect(events).toMatchObject([{ message: { parts: [{ text: 'Direct message response' }] } }]);
    });

    it('refuses before the first event', async () => {
      await rejected(wire.stream('SendStreamingMessage', {}));
      await refused(wire.stream('SendStreamingMessage', tck('x', { taskId: absent })), 'TASK_NOT_FOUND');
      await refused(wire.stream('SubscribeToTask', { id: absent }), 'TASK_NOT_FOUND');
      const { id } = await task('complete-task');
      await refused(wire.stream('SubscribeToTask', { id }), 'UNSUPPORTED_OPERATION');
    });

    it('sends every subscriber the same events, from the task to its end, even when another has left', async () => {
      const { id } = await task('input-required');
      const [gone, ...others] = await Promise.all([1, 2, 3].map(() => open('SubscribeToTask', { id })));
      expect(StreamResponseShape.parse(await gone!.next())).toMatchObject({ task: { id } });
      gone!.close();
      const seen = others.map((events) => events.rest());
      await task('complete-task', { taskId: id });
      const [one, two] = await Promise.all(seen);
      expect(shaped(one!)[0]).toMatchObject({ task: { id, status: { state: 'TASK_STATE_INPUT_REQUIRED' } } });
      expect(states(one!).at(-1)).toBe(completed);
      expect(two).toEqual(one);
    });

    it('is resumed while the work continues', async () => {
      const message = { ...tck('').message, messageId: 'test-resubscribe-message-id-1' };
      const begun = await open('SendStreamingMessage', { message });
      const { id } = (await begun.next()).task;
      begun.close();
      const events = await (await open('SubscribeToTask', { id })).rest();
      expect(events[0]).toMatchObject({ task: { id, status: { state: 'TASK_STATE_WORKING' } } });
      expect(states(events).at(-1)).toBe(completed);
    });
  });

  describe('push notifications', () => {
    const config = { id: 'tck-push-1', url: 'https://example.com/tck-push-webhook' };
    const configured = async (): Promise<string> => {
      const { id } = await task('complete-task');
      const made = await call('CreateTaskPushNotificationConfig', { taskId: id, ...config });
      expect(PushConfigShape.parse(made)).toEqual({ taskId: id, ...config });
      return id as string;
    };

    it('are created, read and listed', async () => {
      const taskId = await configured();
      expect(await call('GetTaskPushNotificationConfig', { taskId, id: config.id })).toEqual({ taskId, ...config });
      const { configs } = await call('ListTaskPushNotificationConfigs', { taskId });
      expect(configs).toEqual([{ taskId, ...config }]);
    });

    it('get an id when the request names none', async () => {
      const { id: taskId } = await task('input-required');
      const { id } = await call('CreateTaskPushNotificationConfig', { taskId, url: config.url });
      expect(await call('GetTaskPushNotificationConfig', { taskId, id })).toEqual({ taskId, id, url: config.url });
    });

    it('are deleted, also repeatedly', async () => {
      const taskId = await configured();
      for (let times = 0; times < 2; times++) await call('DeleteTaskPushNotificationConfig', { taskId, id: config.id });
      await refused(wire.call('GetTaskPushNotificationConfig', { taskId, id: config.id }), 'TASK_NOT_FOUND');
    });

    it('need an existing task', async () => {
      await refused(wire.call('CreateTaskPushNotificationConfig', { taskId: absent, ...config }), 'TASK_NOT_FOUND');
      await refused(wire.call('ListTaskPushNotificationConfigs', { taskId: absent }), 'TASK_NOT_FOUND');
    });

    it('arrive with the credentials, in the format of stream events', async () => {
      sink.received.length = 0;
      const authentication = { scheme: 'Bearer', credentials: 'tck-test-token' };
      const url = sink.url.replace('127.0.0.1', 'localhost');
      const push = { id: 'tck-push-1', url: `${url}/webhook`, token: 'tck-token', authentication };
      const { id } = await task('input-required', {}, { taskPushNotificationConfig: push });
      await task('complete-task', { taskId: id });
      const posts = await eventually(
        () => sink.received,
        (received) => received.at(-1)?.body.statusUpdate?.status.state === completed,
      );
      expect(shaped(posts.map(({ body }) => body as object)).every((event) => 'statusUpdate' in event)).toBe(true);
      for (const { path, headers } of posts) {
        expect(path).toBe('/webhook');
        expect(headers).toMatchObject({
          authorization: 'Bearer tck-test-token',
          'x-a2a-notification-token': 'tck-token',
          'content-type': 'application/a2a+json',
        });
      }
    });
  });

  it('GetExtendedAgentCard is refused, because the card declares none', () =>
    refused(wire.call('GetExtendedAgentCard', {}), 'UNSUPPORTED_OPERATION'));
});
